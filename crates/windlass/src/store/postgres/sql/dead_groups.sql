-- dead_groups: dead letters that failed alike, the largest group first.
SELECT j.fingerprint, q.tenant, q.name, j.kind, coalesce(min(j.error_class), ''), coalesce(min(j.message), ''), count(*),
       min(j.finished_at), max(j.finished_at), max(j.id)
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.class = 'failed' AND j.state = 'failed' AND j.discarded_at IS NULL
  AND ($2::text IS NULL OR q.name = $2::text) AND ($3::text[] IS NULL OR q.tenant = ALL ($3::text[]))
  AND ($4::text IS NULL OR j.kind = $4::text) AND ($5::text IS NULL OR j.error_class = $5::text)
  AND ($6::bigint IS NULL OR j.finished_at >= $6::bigint) AND ($7::bigint IS NULL OR j.schedule_id = $7::bigint)
  AND ($8::bigint IS NULL OR j.parent_id = $8::bigint) AND ($9::text IS NULL OR q.executor = $9::text)
  AND ($10::text IS NULL OR j.fingerprint = $10::text)
GROUP BY j.fingerprint, q.tenant, q.name, j.kind
ORDER BY count(*) DESC, j.fingerprint, q.tenant
LIMIT $1::bigint
