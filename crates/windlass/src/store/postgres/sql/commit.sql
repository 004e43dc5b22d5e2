-- name: finish
-- Jobs whose attempt still holds move to the archive with their attempts. An id without a row back does not hold, or a
-- cancel was requested that its transition does not honour.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
gone AS (
    DELETE FROM {schema}.jobs j
    USING clock,
          unnest($2::bigint[], $3::integer[], $4::bigint[], $5::boolean[], $6::text[], $7::text[], $8::text[], $9::bigint[],
                 $10::integer[], $11::integer[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::boolean[],
                 $18::boolean[], $19::text[], $20::integer[], $21::bigint[], $22::text[], $23::text[], $24::text[],
                 $25::text[])
          AS i (id, attempt, lease_id, stands, class, state, reason, finished_at, failures, crashes, error_class, error, result,
                fingerprint, message, keep, has_attempt, status, retry, started_at, worker, why, note, trace)
    WHERE j.id = ANY (ARRAY[i.id]) AND j.attempt = i.attempt AND j.lease_id IS NOT DISTINCT FROM i.lease_id
      AND (i.stands OR NOT j.cancel_requested)
    RETURNING j.id, j.queue_id, j.due_at, j.created_at, j.policy_id, j.lease_id, j.claimed_at, j.first_attempt_at, j.previous_delay,
              j.start_by, j.timeout_ms, j.schedule_id, j.parent_id, j.attempt, j.replays, j.priority, j.at_most_once,
              j.cancel_requested, j.kind, j.payload, j.idempotency_key, j.http, j.webhook, j.traceparent, j.retry_line,
              coalesce(i.error_class, j.error_class) AS last_class,
              CASE WHEN i.error_class IS NULL THEN j.error ELSE i.error END AS last_error,
              i.class, i.state, i.reason, clock.now AS finished_at, i.finished_at AS ended_at, i.failures, i.crashes, i.error_class,
              i.error, i.result, i.fingerprint, i.message, i.keep, i.has_attempt, i.status, i.retry, i.started_at, i.worker, i.why, i.note,
              i.trace
),
archived AS (
    INSERT INTO {schema}.archive (class, id, queue_id, due_at, created_at, finished_at, policy_id, claimed_at, first_attempt_at,
        previous_delay, start_by, timeout_ms, schedule_id, parent_id, attempt, failures, crashes, replays, priority, at_most_once,
        cancel_requested, state, reason, kind, payload, idempotency_key, error_class, error, result, http, webhook, traceparent,
        retry_line, fingerprint, message)
    SELECT g.class, g.id, g.queue_id, g.due_at, g.created_at, g.finished_at, g.policy_id, g.claimed_at, g.first_attempt_at,
        g.previous_delay, g.start_by, g.timeout_ms, g.schedule_id, g.parent_id, g.attempt, g.failures, g.crashes, g.replays,
        g.priority, g.at_most_once, g.cancel_requested, g.state, g.reason, g.kind, g.payload, g.idempotency_key, g.last_class,
        g.last_error, g.result, g.http, g.webhook, g.traceparent, g.retry_line, g.fingerprint, g.message
    FROM gone g
    WHERE g.keep
),
ledger AS (
    INSERT INTO {schema}.archive_attempts (class, job_finished_at, job_id, number, retry, started_at, finished_at, lease_id, status,
        worker, why, error_class, error, note, trace, replay)
    SELECT g.class, g.finished_at, g.id, g.attempt, g.retry, g.started_at, g.ended_at, g.lease_id, g.status, g.worker, g.why,
        g.error_class, g.error, g.note, g.trace, g.replays
    FROM gone g
    WHERE g.keep AND g.has_attempt
),
earlier AS (
    DELETE FROM {schema}.attempts a
    USING gone g
    WHERE a.job_id = ANY (ARRAY[g.id]) AND (g.attempt > 1 OR NOT g.has_attempt)
    RETURNING g.class, g.finished_at AS job_finished_at, g.keep, a.job_id, a.number, a.retry, a.started_at, a.finished_at,
        a.next_run_at, a.delay_ms, a.lease_id, a.status, a.worker, a.why, a.error_class, a.error, a.note, a.trace, a.replay
),
moved AS (
    INSERT INTO {schema}.archive_attempts (class, job_finished_at, job_id, number, retry, started_at, finished_at, next_run_at,
        delay_ms, lease_id, status, worker, why, error_class, error, note, trace, replay)
    SELECT e.class, e.job_finished_at, e.job_id, e.number, e.retry, e.started_at, e.finished_at, e.next_run_at, e.delay_ms,
        e.lease_id, e.status, e.worker, e.why, e.error_class, e.error, e.note, e.trace, e.replay
    FROM earlier e
    WHERE e.keep
)
SELECT g.id, g.schedule_id FROM gone g

-- name: succeed
-- Jobs whose attempt still holds, and left nothing but its success, move to the archive; the attempt is kept in the
-- job's own row. An id without a row back does not hold. A success stands whether or not a cancel was requested.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
gone AS (
    DELETE FROM {schema}.jobs j
    USING unnest($2::bigint[], $3::integer[], $4::bigint[], $5::integer[], $6::bigint[], $7::bigint[], $8::text[])
          AS i (id, attempt, lease_id, retry, started_at, finished_at, worker)
    WHERE j.id = ANY (ARRAY[i.id]) AND j.attempt = i.attempt AND j.lease_id = i.lease_id
    RETURNING j.id, j.queue_id, j.due_at, j.created_at, j.policy_id, j.lease_id, j.claimed_at, j.first_attempt_at, j.previous_delay,
              j.start_by, j.timeout_ms, j.schedule_id, j.parent_id, j.attempt, j.failures, j.replays, j.priority, j.at_most_once,
              j.cancel_requested, j.kind, j.payload, j.idempotency_key, j.error_class, j.error, j.http, j.webhook, j.traceparent,
              j.retry_line, i.retry, i.started_at, i.finished_at, i.worker
),
archived AS (
    INSERT INTO {schema}.archive (class, id, queue_id, due_at, created_at, finished_at, policy_id, claimed_at, first_attempt_at,
        previous_delay, start_by, timeout_ms, schedule_id, parent_id, attempt, failures, crashes, replays, priority, at_most_once,
        cancel_requested, state, kind, payload, idempotency_key, error_class, error, http, webhook, traceparent, retry_line,
        last_retry, last_started_at, last_finished_at, last_lease_id, last_worker)
    SELECT 'done', g.id, g.queue_id, g.due_at, g.created_at, clock.now, g.policy_id, g.claimed_at, g.first_attempt_at,
        g.previous_delay, g.start_by, g.timeout_ms, g.schedule_id, g.parent_id, g.attempt, g.failures, 0, g.replays, g.priority,
        g.at_most_once, g.cancel_requested, 'succeeded', g.kind, g.payload, g.idempotency_key, g.error_class, g.error, g.http,
        g.webhook, g.traceparent, g.retry_line, g.retry, g.started_at, g.finished_at, g.lease_id, g.worker
    FROM clock, gone g
),
earlier AS (
    DELETE FROM {schema}.attempts a
    USING gone g
    WHERE a.job_id = ANY (ARRAY[g.id]) AND g.attempt > 1
    RETURNING a.job_id, a.number, a.retry, a.started_at, a.finished_at, a.next_run_at, a.delay_ms, a.lease_id, a.status, a.worker,
        a.why, a.error_class, a.error, a.note, a.trace, a.replay
),
moved AS (
    INSERT INTO {schema}.archive_attempts (class, job_finished_at, job_id, number, retry, started_at, finished_at, next_run_at,
        delay_ms, lease_id, status, worker, why, error_class, error, note, trace, replay)
    SELECT 'done', clock.now, e.job_id, e.number, e.retry, e.started_at, e.finished_at, e.next_run_at, e.delay_ms, e.lease_id,
        e.status, e.worker, e.why, e.error_class, e.error, e.note, e.trace, e.replay
    FROM clock, earlier e
)
SELECT g.id, g.schedule_id FROM gone g

-- name: wait
-- Jobs whose attempt still holds wait for their next one; the attempt is recorded. An id without a row back does not
-- hold, or a cancel was requested.
WITH waiting AS (
    UPDATE {schema}.jobs j
    SET state = i.state, due_at = i.due_at, failures = i.failures, crashes = i.crashes, lease_id = NULL,
        previous_delay = coalesce(i.remembered_delay, j.previous_delay), error_class = coalesce(i.error_class, j.error_class),
        error = CASE WHEN i.error_class IS NULL THEN j.error ELSE i.error END
    FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::integer[], $8::integer[],
                $9::text[], $10::text[], $11::text[], $12::integer[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[],
                $18::bigint[], $19::text[])
         AS i (id, attempt, lease_id, state, due_at, delay, failures, crashes, error_class, error, status, retry, started_at,
               finished_at, worker, why, note, remembered_delay, trace)
    WHERE j.id = ANY (ARRAY[i.id]) AND j.attempt = i.attempt AND j.lease_id = i.lease_id AND NOT j.cancel_requested
    RETURNING j.id, i.attempt, i.lease_id, i.due_at, i.delay, i.error_class, i.error, i.status, i.retry, i.started_at, i.finished_at,
        i.worker, i.why, i.note, i.trace, j.replays
),
ledger AS (
    INSERT INTO {schema}.attempts (job_id, number, retry, started_at, finished_at, next_run_at, delay_ms, lease_id, status, worker,
        why, error_class, error, note, trace, replay)
    SELECT w.id, w.attempt, w.retry, w.started_at, w.finished_at, w.due_at, w.delay, w.lease_id, w.status, w.worker, w.why,
        w.error_class, w.error, w.note, w.trace, w.replays
    FROM waiting w
)
SELECT w.id FROM waiting w

-- name: recorded_outcome
-- Why a commit did not apply. `cancel`: the attempt holds, but a cancel was requested. `repeated`: the same outcome is
-- on record.
SELECT i.place,
       EXISTS (SELECT FROM {schema}.jobs j
               WHERE j.id = i.id AND j.attempt = i.attempt AND j.lease_id = i.lease_id AND j.cancel_requested) AS cancel,
       EXISTS (SELECT FROM {schema}.attempts a
               WHERE a.job_id = i.id AND a.number = i.attempt AND a.lease_id = i.lease_id AND a.status = i.status)
       OR EXISTS (SELECT FROM {schema}.ended_attempts a
               WHERE a.job_id = i.id AND a.number = i.attempt AND a.lease_id = i.lease_id AND a.status = i.status) AS repeated
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) WITH ORDINALITY AS i (id, attempt, lease_id, status, place)

-- name: leases_end
-- Leases whose last job was committed.
DELETE FROM {schema}.leases WHERE id = ANY ($1::bigint[])

-- name: one_shots_end
-- Schedules that fire once are deleted when their run has ended.
DELETE FROM {schema}.schedules s
WHERE s.id = ANY ($1::bigint[]) AND s.one_shot AND s.next_at IS NULL
