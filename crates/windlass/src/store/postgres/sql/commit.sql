-- name: lease_lock
-- What leases hold, locked so that nobody reaps them or cancels their jobs until this transaction ends. A job of theirs
-- runs if its attempt has not ended. Also the gates that they passed, and whether a schedule waits for the end of its only run.
SELECT l.id, l.claimed_at, l.job_ids, l.attempts, l.replays, l.previous_delays, l.first_attempts_at, l.dues_at, l.priorities, l.cancels,
       EXISTS (SELECT FROM {schema}.schedules s WHERE s.one_shot AND s.next_at IS NULL) AS has_spent,
       p.jobs AS passes
FROM {schema}.leases l LEFT JOIN {schema}.passes p ON p.lease_id = l.id
WHERE l.id = ANY ($1::bigint[])
ORDER BY l.id
FOR KEY SHARE OF l

-- name: succeed_first
-- First attempts of one lease that left nothing but their success, of jobs that were as they had been stored. An id
-- without a row back had ended before.
INSERT INTO {schema}.attempts (job_id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, state, queue_id, ended_at)
SELECT i.id, $2::bigint, $3::bigint, i.started_at, i.finished_at, 1, 0, $4::text, 'succeeded', i.queue_id, clock.now
FROM (SELECT {now} AS now) clock,
     unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) AS i (id, queue_id, started_at, finished_at)
ON CONFLICT (job_id, number) DO NOTHING
RETURNING job_id

-- name: succeed
-- Attempts of one lease that left nothing but their success. An id without a row back had ended before.
INSERT INTO {schema}.attempts (job_id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, state, queue_id, ended_at,
                          due_at, first_attempt_at, previous_delay, replay, replays, priority)
SELECT i.id, $2::bigint, $3::bigint, i.started_at, i.finished_at, i.number, i.retry, $4::text, 'succeeded', i.queue_id, clock.now,
       i.due_at, i.first_attempt_at, i.previous_delay, i.replays, i.replays, i.priority
FROM (SELECT {now} AS now) clock,
     unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::integer[], $10::integer[], $11::bigint[], $12::bigint[],
            $13::bigint[], $14::integer[], $15::smallint[])
     AS i (id, queue_id, started_at, finished_at, number, retry, due_at, first_attempt_at, previous_delay, replays, priority)
ON CONFLICT (job_id, number) DO NOTHING
RETURNING job_id

-- name: finish
-- Attempts that end their jobs. An id without a row back had ended before; or its job is not kept, and is gone already.
INSERT INTO {schema}.attempts (job_id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, error_class,
                          error, note, trace, replay, state, queue_id, ended_at, due_at, first_attempt_at, previous_delay, failures,
                          crashes, replays, priority, cancel_requested, reason, result, fingerprint, message)
SELECT i.id, i.lease_id, i.claimed_at, i.started_at, i.finished_at, i.number, i.retry, i.worker, i.status, i.why, i.error_class,
       i.error, i.note, i.trace, i.replays, i.state, i.queue_id, clock.now, i.due_at, i.first_attempt_at, i.previous_delay, i.failures,
       i.crashes, i.replays, i.priority, i.cancel_requested, i.reason, i.result, i.fingerprint, i.message
FROM (SELECT {now} AS now) clock,
     unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::integer[], $8::integer[], $9::text[], $10::text[],
            $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
            $20::integer[], $21::integer[], $22::integer[], $23::smallint[], $24::boolean[], $25::text[], $26::text[], $27::text[],
            $28::text[], $29::boolean[], $30::text[])
     AS i (id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, error_class, error, note, state,
           queue_id, due_at, first_attempt_at, previous_delay, failures, crashes, replays, priority, cancel_requested, reason, result,
           fingerprint, message, keep, trace)
WHERE i.keep OR EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = ANY (ARRAY[i.id]))
ON CONFLICT (job_id, number) DO NOTHING
RETURNING job_id

-- name: forget
-- Finished jobs that are not kept, with their attempts.
WITH ledger AS (DELETE FROM {schema}.attempts WHERE job_id = ANY ($1::bigint[]))
DELETE FROM {schema}.jobs WHERE id = ANY ($1::bigint[])

-- name: wait
-- Attempts after which their jobs wait for the next one. An id without a row back had ended before.
INSERT INTO {schema}.attempts (job_id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, next_run_at,
                          delay_ms, error_class, error, note, trace, replay)
SELECT i.id, i.lease_id, i.claimed_at, i.started_at, i.finished_at, i.number, i.retry, i.worker, i.status, i.why, i.next_run_at,
       i.delay_ms, i.error_class, i.error, i.note, i.trace, i.replay
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $8::text[], $9::text[],
            $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[], $17::integer[])
     AS i (id, lease_id, claimed_at, started_at, finished_at, number, retry, worker, status, why, next_run_at, delay_ms, error_class,
           error, note, trace, replay)
ON CONFLICT (job_id, number) DO NOTHING
RETURNING job_id

-- name: wait_again
-- Jobs whose attempt has just ended wait again.
INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once, is_retrying, attempt, failures, crashes, replays,
                         previous_delay, first_attempt_at)
SELECT j.id, j.queue_id, i.due_at, coalesce(i.priority, j.priority), j.at_most_once, i.is_retrying, i.attempt, i.failures, i.crashes,
       i.replays, i.previous_delay, i.first_attempt_at
FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::boolean[], $5::integer[], $6::integer[], $7::integer[], $8::integer[],
            $9::bigint[], $10::bigint[])
     AS i (id, due_at, priority, is_retrying, attempt, failures, crashes, replays, previous_delay, first_attempt_at)
JOIN {schema}.jobs j ON j.id = ANY (ARRAY[i.id])

-- name: end_waiting
-- Waiting jobs, locked by this transaction, end without another attempt: in the row of their last one, or, if they never
-- had one, in a row with the number 0.
WITH input AS MATERIALIZED (
    SELECT i.id, i.number, i.state, i.reason, i.queue_id, {now} AS ended_at, i.due_at, i.first_attempt_at, i.previous_delay, i.failures,
           i.crashes, i.replays, i.priority, i.fingerprint, i.message
    FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
                $10::integer[], $11::integer[], $12::integer[], $13::smallint[], $14::text[], $15::text[])
         AS i (id, number, state, reason, queue_id, due_at, first_attempt_at, previous_delay, failures, crashes, replays, priority,
               fingerprint, message)
),
gone AS (DELETE FROM {schema}.waiting WHERE id = ANY ($2::bigint[])),
never AS (
    INSERT INTO {schema}.attempts (job_id, number, state, reason, queue_id, ended_at, due_at, first_attempt_at, previous_delay, failures,
                              crashes, replays, priority, fingerprint, message)
    SELECT i.id, i.number, i.state, i.reason, i.queue_id, i.ended_at, i.due_at, i.first_attempt_at, i.previous_delay, i.failures,
           i.crashes, i.replays, i.priority, i.fingerprint, i.message
    FROM input i
    WHERE i.number = 0
)
UPDATE {schema}.attempts a
SET state = i.state, reason = i.reason, queue_id = i.queue_id, ended_at = i.ended_at, due_at = i.due_at,
    first_attempt_at = i.first_attempt_at, previous_delay = i.previous_delay, failures = i.failures, crashes = i.crashes,
    replays = i.replays, priority = i.priority, fingerprint = i.fingerprint, message = i.message
FROM input i
WHERE a.job_id = ANY (ARRAY[i.id]) AND a.number = i.number AND i.number > 0

-- name: recorded_outcome
-- Why a commit did not apply: whether the attempt has ended, and with the same outcome. A job that is gone has ended.
SELECT i.place, a.job_id IS NOT NULL OR j.id IS NULL AS is_recorded,
       coalesce(a.lease_id = i.lease_id AND coalesce(a.status, 'SUCCESS') = i.status, false) AS is_repeated
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) WITH ORDINALITY AS i (id, attempt, lease_id, status, place)
LEFT JOIN {schema}.attempts a ON a.job_id = ANY (ARRAY[i.id]) AND a.number = i.attempt AND i.attempt > 0
LEFT JOIN {schema}.jobs j ON j.id = ANY (ARRAY[i.id])

-- name: earlier_errors
-- What the attempts of these jobs last reported.
SELECT i.id, e.error_class, e.error
FROM unnest($1::bigint[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT a.error_class, a.error
    FROM {schema}.attempts a
    WHERE a.job_id = ANY (ARRAY[i.id]) AND a.error_class IS NOT NULL
    ORDER BY a.number DESC
    LIMIT 1
) e

-- name: leases_end
-- Leases whose last job was committed.
WITH ends AS (DELETE FROM {schema}.lease_ends WHERE id = ANY ($1::bigint[])),
passed AS (DELETE FROM {schema}.passes WHERE lease_id = ANY ($1::bigint[]))
DELETE FROM {schema}.leases WHERE id = ANY ($1::bigint[])

-- name: one_shots_end
-- Schedules that fire once are deleted when their run has ended.
DELETE FROM {schema}.schedules s
WHERE s.one_shot AND s.next_at IS NULL
  AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.schedule_id = s.id AND j.id = ANY ($1::bigint[]))
