-- succeed: jobs whose attempt still holds and left nothing but its success leave for the archive, the attempt in the job's own row.
-- No row back for an id: it does not hold. A success stands whether or not a cancel was requested.
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
        a.why, a.error_class, a.error, a.note
),
moved AS (
    INSERT INTO {schema}.archive_attempts (class, job_finished_at, job_id, number, retry, started_at, finished_at, next_run_at,
        delay_ms, lease_id, status, worker, why, error_class, error, note)
    SELECT 'done', clock.now, e.job_id, e.number, e.retry, e.started_at, e.finished_at, e.next_run_at, e.delay_ms, e.lease_id,
        e.status, e.worker, e.why, e.error_class, e.error, e.note
    FROM clock, earlier e
)
SELECT g.id, g.schedule_id FROM gone g
