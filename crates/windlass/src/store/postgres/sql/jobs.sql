-- name: job_found
-- Jobs by id that wait or have finished.
SELECT {live} FROM {schema}.waiters j WHERE j.id = ANY ($1::bigint[])
UNION ALL
SELECT {archived} FROM {schema}.archive j WHERE j.id = ANY ($1::bigint[])

-- name: job_running
-- Jobs by id that run. Reads every lease.
SELECT {live} FROM {schema}.running j WHERE j.id = ANY ($1::bigint[])

-- name: keyed
-- The live job under a key, and the lease it runs under.
SELECT k.job_id AS id, r.lease_id
FROM {schema}.keys k
JOIN {schema}.jobs j ON j.id = k.job_id
LEFT JOIN LATERAL (
    SELECT l.id AS lease_id
    FROM {schema}.leases l
    WHERE l.job_ids @> ARRAY[k.job_id] AND NOT EXISTS (
        SELECT FROM {schema}.attempts a
        WHERE a.job_id = k.job_id AND a.number = coalesce(l.attempts[array_position(l.job_ids, k.job_id)], 1))
    LIMIT 1
) r ON true
WHERE k.tenant = $1::text AND k.key = $2::text
  AND NOT EXISTS (SELECT FROM {schema}.attempts o WHERE o.job_id = k.job_id AND o.state IS NOT NULL)

-- name: is_live
-- Whether a job has not finished.
SELECT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = $1::bigint)
   AND NOT EXISTS (SELECT FROM {schema}.attempts o WHERE o.job_id = $1::bigint AND o.state IS NOT NULL) AS is_live

-- name: jobs_newest
-- A page of waiting, running and archived jobs by id. Each side is read by its own id index, no further than the page; the
-- view of both live sides would be read and sorted whole. Failed jobs are few among those that ended well, so they are
-- a side of their own. Sides that the filter rules out ($3, $13, $14) are not read. Queues are passed as numbers: the
-- planner cannot tell how many jobs a name has, and would read and sort them all to find a page.
SELECT {listed}
FROM (
    (SELECT {live}
     FROM {schema}.waiters j
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.created_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT {live}
     FROM {schema}.running j
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.created_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint) AND j.state <> 'failed' AND $13::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.finished_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint) AND j.state = 'failed' AND $14::boolean
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.finished_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
       AND (NOT $11::boolean OR j.discarded_at IS NULL) AND ($12::text IS NULL OR j.fingerprint = $12::text)
     ORDER BY j.id DESC LIMIT $2::bigint)
) j
ORDER BY j.id DESC
LIMIT $2::bigint

-- name: jobs_oldest
-- As jobs_newest, in the other order.
SELECT {listed}
FROM (
    (SELECT {live}
     FROM {schema}.waiters j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.created_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id ASC LIMIT $2::bigint)
    UNION ALL
    (SELECT {live}
     FROM {schema}.running j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.created_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id ASC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint) AND j.state <> 'failed' AND $13::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.finished_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id ASC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint) AND j.state = 'failed' AND $14::boolean
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.finished_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
       AND (NOT $11::boolean OR j.discarded_at IS NULL) AND ($12::text IS NULL OR j.fingerprint = $12::text)
     ORDER BY j.id ASC LIMIT $2::bigint)
) j
ORDER BY j.id ASC
LIMIT $2::bigint

-- name: dead_groups
-- Dead letters by fingerprint and tenant, the largest group first.
SELECT j.fingerprint, q.tenant, q.name AS queue, j.kind, coalesce(min(j.error_class), '') AS error_class,
       coalesce(min(j.message), '') AS message, count(*) AS jobs, min(j.finished_at) AS first_seen, max(j.finished_at) AS last_seen,
       max(j.id) AS example
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.state = 'failed' AND j.discarded_at IS NULL
  AND ($2::bigint[] IS NULL OR j.queue_id = ANY ($2::bigint[]))
  AND ($3::text IS NULL OR j.kind = $3::text) AND ($4::text IS NULL OR j.error_class = $4::text)
  AND ($5::bigint IS NULL OR j.finished_at >= $5::bigint) AND ($6::bigint IS NULL OR j.schedule_id = $6::bigint)
  AND ($7::bigint IS NULL OR j.parent_id = $7::bigint) AND ($8::text IS NULL OR j.fingerprint = $8::text)
GROUP BY j.fingerprint, q.tenant, q.name, j.kind
ORDER BY count(*) DESC, j.fingerprint, q.tenant
LIMIT $1::bigint

-- name: dead_series
-- How many dead letters of each group failed in each step: $1 when the first step begins, $9 its length, $10 the end.
SELECT j.fingerprint, q.tenant, (j.finished_at - $1::bigint) / $9::bigint AS step, count(*) AS jobs
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.state = 'failed' AND j.discarded_at IS NULL
  AND ($2::bigint[] IS NULL OR j.queue_id = ANY ($2::bigint[]))
  AND ($3::text IS NULL OR j.kind = $3::text) AND ($4::text IS NULL OR j.error_class = $4::text)
  AND ($5::bigint IS NULL OR j.finished_at >= $5::bigint) AND ($6::bigint IS NULL OR j.schedule_id = $6::bigint)
  AND ($7::bigint IS NULL OR j.parent_id = $7::bigint) AND ($8::text IS NULL OR j.fingerprint = $8::text)
  AND j.finished_at >= $1::bigint AND j.finished_at < $10::bigint
GROUP BY 1, 2, 3
