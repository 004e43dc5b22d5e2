-- dead_groups: dead letters that failed alike, the largest group first.
SELECT j.fingerprint, q.tenant, q.name, j.kind, coalesce(min(j.error_class), ''), coalesce(min(j.message), ''), count(*),
       min(j.finished_at), max(j.finished_at), max(j.id)
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.class = 'failed' AND j.state = 'failed' AND j.discarded_at IS NULL
  AND ($2::bigint[] IS NULL OR j.queue_id = ANY ($2::bigint[]))
  AND ($3::text IS NULL OR j.kind = $3::text) AND ($4::text IS NULL OR j.error_class = $4::text)
  AND ($5::bigint IS NULL OR j.finished_at >= $5::bigint) AND ($6::bigint IS NULL OR j.schedule_id = $6::bigint)
  AND ($7::bigint IS NULL OR j.parent_id = $7::bigint) AND ($8::text IS NULL OR j.fingerprint = $8::text)
GROUP BY j.fingerprint, q.tenant, q.name, j.kind
ORDER BY count(*) DESC, j.fingerprint, q.tenant
LIMIT $1::bigint
