-- name: copy_attempts
-- Every attempt of these jobs that has ended.
SELECT {attempt}
FROM {schema}.ended_attempts a
WHERE a.job_id = ANY ($1::bigint[])
ORDER BY a.job_id, a.number

-- name: copy_keys
-- Those of these keys that refer to these jobs, and until when.
SELECT i.job_id, k.expires_at
FROM unnest($2::text[], $3::text[], $4::bigint[]) AS i (tenant, key, job_id)
JOIN {schema}.keys k ON k.tenant = i.tenant AND k.key = i.key AND k.job_id = i.job_id
WHERE k.expires_at IS NULL OR k.expires_at > {now}

-- name: import_lock
-- One import at a time.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} import', 0))

-- name: import_mark
-- How far an import has come, and whether there is anything in the store.
SELECT (SELECT s.value FROM {schema}.settings s
        WHERE s.scope = 'server' AND s.tenant = '*' AND s.name = $1::text AND s.node = '') AS mark,
       NOT EXISTS (SELECT FROM {schema}.jobs) AND NOT EXISTS (SELECT FROM {schema}.schedules) AS is_empty

-- name: installation_put
UPDATE {schema}.installation SET id = $1::text

-- name: ids_last
SELECT CASE WHEN i.is_called THEN i.last_value ELSE 0 END AS last FROM {schema}.ids i

-- name: ids_raise
-- Ids up to here are taken.
SELECT setval('{schema}.ids', greatest($1::bigint, i.last_value)) AS last FROM {schema}.ids i

-- name: import_schedules
-- A schedule with an id that exists stays as it is.
INSERT INTO {schema}.schedules (id, tenant, cadence, zone, one_shot, overlap, missed, dead_letters, template, paused, next_at, last_at,
                           last_job, last_dead, created_at)
SELECT i.id, i.tenant, i.cadence, i.zone, i.one_shot, i.overlap, i.missed, i.dead_letters, i.template, i.paused, i.next_at, i.last_at,
       i.last_job, i.last_dead, i.created_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::text[], $9::text[],
            $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
     AS i (id, tenant, cadence, zone, one_shot, overlap, missed, dead_letters, template, paused, next_at, last_at, last_job, last_dead,
           created_at)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: import_jobs
-- A job with an id that exists stays as it is: no row back.
INSERT INTO {schema}.jobs (id, queue_id, due_at, created_at, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                      at_most_once, kind, payload, idempotency_key, http, webhook, traceparent, limit_key)
SELECT i.id, i.queue_id, i.due_at, i.created_at, i.policy_id, i.start_by, i.timeout_ms, i.schedule_id, i.parent_id, i.priority,
       i.at_most_once, i.kind, i.payload, i.idempotency_key, i.http, i.webhook, i.traceparent, i.limit_key
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::smallint[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],
            $17::text[], $18::text[])
     AS i (id, queue_id, due_at, created_at, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority, at_most_once, kind,
           payload, idempotency_key, http, webhook, traceparent, limit_key)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: import_waiting
INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once, is_retrying, start_by, attempt, failures, crashes, replays,
                         previous_delay, first_attempt_at)
SELECT i.id, i.queue_id, i.due_at, i.priority, i.at_most_once, i.is_retrying, i.start_by, i.attempt, i.failures, i.crashes, i.replays,
       i.previous_delay, i.first_attempt_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::boolean[], $6::boolean[], $7::bigint[], $8::integer[],
            $9::integer[], $10::integer[], $11::integer[], $12::bigint[], $13::bigint[])
     AS i (id, queue_id, due_at, priority, at_most_once, is_retrying, start_by, attempt, failures, crashes, replays, previous_delay,
           first_attempt_at)

-- name: import_attempts
-- Leases stay behind: no lease has the number 0.
INSERT INTO {schema}.attempts (job_id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, next_run_at,
                          delay_ms, error_class, error, note, trace, replay)
SELECT i.job_id, 0, i.claimed_at, i.started_at, i.finished_at, i.number, i.retry, i.worker, i.status, i.why, i.next_run_at, i.delay_ms,
       i.error_class, i.error, i.note, i.trace, i.replay
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::text[], $8::text[], $9::text[],
            $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[], $16::integer[])
     AS i (job_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, next_run_at, delay_ms, error_class, error,
           note, trace, replay)

-- name: import_outcomes
-- How jobs ended: in the row of their last attempt, or, if they never had one, in a row with the number 0.
WITH input AS MATERIALIZED (
    SELECT i.id, i.number, i.state, i.reason, i.queue_id, i.ended_at, i.due_at, i.first_attempt_at, i.previous_delay, i.failures,
           i.crashes, i.replays, i.priority, i.cancel_requested, i.result, i.fingerprint, i.message, i.discarded_at, i.discard_reason
    FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
                $9::bigint[], $10::integer[], $11::integer[], $12::integer[], $13::smallint[], $14::boolean[], $15::text[], $16::text[],
                $17::text[], $18::bigint[], $19::text[])
         AS i (id, number, state, reason, queue_id, ended_at, due_at, first_attempt_at, previous_delay, failures, crashes, replays,
               priority, cancel_requested, result, fingerprint, message, discarded_at, discard_reason)
),
never AS (
    INSERT INTO {schema}.attempts (job_id, number, state, reason, queue_id, ended_at, due_at, first_attempt_at, previous_delay, failures,
                              crashes, replays, priority, cancel_requested, result, fingerprint, message, discarded_at,
                              discard_reason)
    SELECT i.id, i.number, i.state, i.reason, i.queue_id, i.ended_at, i.due_at, i.first_attempt_at, i.previous_delay, i.failures,
           i.crashes, i.replays, i.priority, i.cancel_requested, i.result, i.fingerprint, i.message, i.discarded_at, i.discard_reason
    FROM input i
    WHERE i.number = 0
)
UPDATE {schema}.attempts a
SET state = i.state, reason = i.reason, queue_id = i.queue_id, ended_at = i.ended_at, due_at = i.due_at,
    first_attempt_at = i.first_attempt_at, previous_delay = i.previous_delay, failures = i.failures, crashes = i.crashes,
    replays = i.replays, priority = i.priority, cancel_requested = i.cancel_requested, result = i.result,
    fingerprint = i.fingerprint, message = i.message, discarded_at = i.discarded_at, discard_reason = i.discard_reason
FROM input i
WHERE a.job_id = ANY (ARRAY[i.id]) AND a.number = i.number AND i.number > 0

-- name: import_keys
-- A key that refers to another job stays with it.
INSERT INTO {schema}.keys (tenant, key, job_id, expires_at)
SELECT i.tenant, i.key, i.job_id, i.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i (tenant, key, job_id, expires_at)
ON CONFLICT (tenant, key) DO NOTHING

-- name: import_balances
-- So many more live jobs and dead letters. Not by deltas: an import is no enqueue in the statistics.
INSERT INTO {schema}.balances AS b (queue_id, live, running, dead)
SELECT i.queue_id, i.live, 0, i.dead
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS i (queue_id, live, dead)
ORDER BY i.queue_id
ON CONFLICT (queue_id) DO UPDATE SET live = b.live + excluded.live, dead = b.dead + excluded.dead
