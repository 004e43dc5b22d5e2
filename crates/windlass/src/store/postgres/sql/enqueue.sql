-- name: enqueue
-- Stores new jobs. Ids grow in the order of the arrays.
WITH clock AS MATERIALIZED (SELECT {now} AS now)
INSERT INTO {schema}.jobs (queue_id, due_at, created_at, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                           at_most_once, state, kind, payload, idempotency_key, http, webhook, traceparent)
SELECT i.queue_id, coalesce(i.run_at, clock.now + i.delay), clock.now, i.policy_id, i.start_by, i.timeout_ms, i.schedule_id,
       i.parent_id, i.priority, i.at_most_once, 'queued', i.kind, i.payload, i.idempotency_key, i.http, i.webhook, i.traceparent
FROM clock,
     unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::smallint[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[])
     WITH ORDINALITY AS i (queue_id, run_at, delay, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                           at_most_once, kind, payload, idempotency_key, http, webhook, traceparent, place)
ORDER BY i.place
RETURNING id, created_at, due_at

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
SELECT k.tenant, k.key, k.job_id, k.expires_at, j.id IS NOT NULL AS is_live, {now} AS now,
       coalesce(j.kind, a.kind) AS kind, coalesce(j.payload, a.payload) AS payload
FROM unnest($2::text[], $3::text[]) AS i (tenant, key)
JOIN {schema}.keys k ON k.tenant = i.tenant AND k.key = i.key
LEFT JOIN {schema}.jobs j ON j.id = k.job_id
LEFT JOIN {schema}.archive a ON a.id = k.job_id

-- name: key_put
-- Assigns these keys to these jobs.
INSERT INTO {schema}.keys AS k (tenant, key, job_id, expires_at)
SELECT i.tenant, i.key, i.job_id, i.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i (tenant, key, job_id, expires_at)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
