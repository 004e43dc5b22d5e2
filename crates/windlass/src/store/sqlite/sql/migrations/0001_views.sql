-- Views for operators who use SQL. Their columns are stable and the same on Postgres; the columns of the tables may
-- change. Times are UTC text.
--   windlass_all_jobs        every job, live or archived
--   windlass_all_attempts    every attempt that has ended
--   windlass_dead_letters    failed jobs that await manual action
--   windlass_job_schedules   schedules, with their next execution time
--   windlass_job_executions  every attempt that has ended, by schedule
--   windlass_messages        live jobs as a message queue reads them: queue, msg_id, read_ct, enqueued_at, vt
CREATE VIEW windlass_all_jobs AS
SELECT j.id, q.tenant, q.name AS queue, q.executor, j.kind, j.payload, j.priority, j.state, NULL AS reason,
    iif(j.at_most_once, 'AT_MOST_ONCE', 'AT_LEAST_ONCE') AS delivery, p.line AS retry, j.attempt, j.failures, j.crashes,
    j.replays,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.due_at / 1000.0, 'unixepoch') AS due_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.claimed_at / 1000.0, 'unixepoch') AS claimed_at,
    NULL AS finished_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.start_by / 1000.0, 'unixepoch') AS start_by,
    j.idempotency_key, j.cancel_requested, j.error_class, j.error, NULL AS result, NULL AS discarded_at,
    NULL AS discard_reason, j.schedule_id, j.parent_id
FROM windlass_live_jobs j
JOIN windlass_queues q ON q.id = j.queue_id
JOIN windlass_policies p ON p.id = j.policy_id
UNION ALL
SELECT a.id, q.tenant, q.name, q.executor, a.kind, a.payload, a.priority, a.state, a.reason,
    iif(a.at_most_once, 'AT_MOST_ONCE', 'AT_LEAST_ONCE'), p.line, a.attempt, a.failures, a.crashes,
    a.replays,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.due_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.claimed_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.start_by / 1000.0, 'unixepoch'),
    a.idempotency_key, a.cancel_requested, a.error_class, a.error, a.result,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.discarded_at / 1000.0, 'unixepoch'),
    a.discard_reason, a.schedule_id, a.parent_id
FROM windlass_archive a
JOIN windlass_queues q ON q.id = a.queue_id
JOIN windlass_policies p ON p.id = a.policy_id;

CREATE VIEW windlass_all_attempts AS
SELECT job_id, number AS attempt, retry,
    iif(replay = 0, '', 'Replay ' || replay || ': ')
        || CASE WHEN status = 'SNOOZED' THEN 'Snoozed' WHEN status = 'RELEASED' THEN 'Released' WHEN retry = 0 THEN 'Initial'
            ELSE 'Retry #' || retry END AS label,
    status,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
    finished_at - started_at AS duration_ms, error_class, error, note, worker,
    strftime('%Y-%m-%dT%H:%M:%fZ', next_run_at / 1000.0, 'unixepoch') AS next_run_at, delay_ms, why, trace, replay
FROM windlass_ended_attempts;

CREATE VIEW windlass_dead_letters AS
SELECT a.id, q.tenant, q.name AS queue, q.executor, a.kind, a.payload, a.reason, a.error_class, a.error, a.fingerprint,
    a.attempt, a.failures,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch') AS finished_at
FROM windlass_dead a
JOIN windlass_queues q ON q.id = a.queue_id;

-- `read_ct` counts attempts that have ended, so the current one is `read_ct + 1`. `vt` is when the message is visible
-- (again): its due time, or the end of its lease while it runs.
CREATE VIEW windlass_messages AS
SELECT q.name AS queue, w.id AS msg_id, w.attempt AS read_ct,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000.0, 'unixepoch') AS enqueued_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(l.expires_at, w.due_at) / 1000.0, 'unixepoch') AS vt,
    q.tenant, j.kind, j.payload AS message
FROM windlass_live w
JOIN windlass_jobs j ON j.id = w.id
JOIN windlass_queues q ON q.id = j.queue_id
LEFT JOIN windlass_leases l ON l.id = w.lease_id;

-- Schedules as a scheduler's users read them. `next_execution_time` is when the last run is tried again, else the next
-- firing.
CREATE VIEW windlass_job_schedules AS
SELECT s.id AS job_id, s.tenant, s.cadence AS schedule, s.zone AS time_zone, s.template ->> '$.http.url' AS api,
    s.template ->> '$.kind' AS kind, s.template ->> '$.delivery' AS type, 1 - s.one_shot AS is_recurring,
    iif(s.template ->> '$.delivery' = 'AT_MOST_ONCE', 0,
        CAST(substr(s.template ->> '$.policy', instr(s.template ->> '$.policy', 'retries=') + 8) AS INTEGER)) AS max_retry_count,
    s.paused AS is_paused,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(w.due_at, iif(s.paused, NULL, s.next_at)) / 1000.0, 'unixepoch') AS next_execution_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.last_at / 1000.0, 'unixepoch') AS last_execution_time, s.last_job AS last_run_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at / 1000.0, 'unixepoch') AS created_at
FROM windlass_schedules s
LEFT JOIN windlass_live w ON w.id = s.last_job AND w.is_retrying = 1 AND w.lease_id IS NULL;

-- One row for each attempt that has ended. `job_id` is the schedule's id, or that of a job without a schedule; `run_id` is
-- the job that ran.
CREATE VIEW windlass_job_executions AS
SELECT coalesce(l.schedule_id, o.schedule_id, a.job_id) AS job_id, a.job_id AS run_id, a.number AS attempt,
    a.retry AS retry_count, a.status, strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') AS execution_time,
    a.finished_at - a.started_at AS duration_ms, a.error_class, a.error, a.note,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.next_run_at / 1000.0, 'unixepoch') AS next_execution_time, a.worker
FROM windlass_ended_attempts a
LEFT JOIN windlass_live l ON l.id = a.job_id
LEFT JOIN windlass_outcomes o ON o.id = a.job_id;
