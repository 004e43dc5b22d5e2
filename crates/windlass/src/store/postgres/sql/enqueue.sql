-- name: enqueue
-- Stores new jobs. Ids grow in the order of the arrays.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
stored AS (
    INSERT INTO {schema}.jobs (queue_id, due_at, created_at, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                               at_most_once, kind, payload, idempotency_key, http, webhook, traceparent, limit_key)
    SELECT i.queue_id, coalesce(i.run_at, clock.now + i.delay), clock.now, i.policy_id, i.start_by, i.timeout_ms, i.schedule_id,
           i.parent_id, i.priority, i.at_most_once, i.kind, i.payload, i.idempotency_key, i.http, i.webhook, i.traceparent,
           i.limit_key
    FROM clock,
         unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
                $10::smallint[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
                $18::text[])
         WITH ORDINALITY AS i (queue_id, run_at, delay, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                               at_most_once, kind, payload, idempotency_key, http, webhook, traceparent, limit_key, place)
    ORDER BY i.place
    RETURNING id, queue_id, created_at, due_at, priority, at_most_once, start_by
),
waiting AS (
    INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once, start_by)
    SELECT s.id, s.queue_id, s.due_at, s.priority, s.at_most_once, s.start_by FROM stored s
)
SELECT s.id, s.created_at, s.due_at FROM stored s

-- name: enqueue_alike
-- Stores new jobs that differ in nothing but their payload, and counts them: all that an enqueue does, in one statement. Ids
-- grow in the order of the array. One row for all jobs: a thousand rows take longer to send and to read.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
stored AS (
    INSERT INTO {schema}.jobs (queue_id, due_at, created_at, policy_id, priority, at_most_once, kind, payload, traceparent)
    SELECT $2::bigint, coalesce($3::bigint, clock.now + $4::bigint), clock.now, $5::bigint, $6::smallint, $7::boolean, $8::text, i.payload,
           $10::text
    FROM clock, unnest($9::text[]) AS i (payload)
    RETURNING id, created_at, due_at
),
waiting AS (
    INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once)
    SELECT s.id, $2::bigint, s.due_at, $6::smallint, $7::boolean FROM stored s
),
counted AS (
    INSERT INTO {schema}.tally_deltas (at, queue_id, kind, enqueued)
    SELECT clock.now, $2::bigint, $8::text, cardinality($9::text[]) FROM clock
)
SELECT array_agg(s.id) AS ids, min(s.created_at) AS created_at, min(s.due_at) AS due_at FROM stored s

-- name: key_lock
-- One caller at a time per idempotency key, always in the same order.
SELECT pg_advisory_xact_lock(h.hash)
FROM (
    SELECT DISTINCT hashtextextended('{schema}' || ' ' || i.tenant || ' ' || i.key, 0) AS hash
    FROM unnest($1::text[], $2::text[]) AS i (tenant, key)
    ORDER BY 1
) h

-- name: key_find
-- The jobs that these keys last belonged to, with kind and payload if the job is still kept.
SELECT i.tenant, i.key, k.job_id, k.expires_at, {now} AS now, j.kind, j.payload,
       j.id IS NOT NULL AND NOT EXISTS (
           SELECT FROM {schema}.attempts o WHERE o.job_id = k.job_id AND o.state IS NOT NULL) AS is_live
FROM unnest($2::text[], $3::text[]) AS i (tenant, key)
JOIN {schema}.keys k ON k.tenant = i.tenant AND k.key = i.key
LEFT JOIN {schema}.jobs j ON j.id = k.job_id

-- name: key_put
-- Assigns these keys to these jobs.
INSERT INTO {schema}.keys AS k (tenant, key, job_id, expires_at)
SELECT i.tenant, i.key, i.job_id, i.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i (tenant, key, job_id, expires_at)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
