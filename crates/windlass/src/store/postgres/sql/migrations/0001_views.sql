-- Views for operators who use SQL. Their columns are stable and the same on SQLite; the columns of the tables, and of the
-- views that Windlass itself reads, may change.
--   all_jobs        every job, live or archived
--   all_attempts    every attempt that has ended
--   dead_letters    failed jobs that await manual action
--   messages        live jobs as a message queue reads them: queue, msg_id, read_ct, enqueued_at, vt
CREATE FUNCTION {schema}.moment(ms bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' $$;

-- Jobs are looked up one by one, by id: OFFSET 0 keeps the planner from going through them all and comparing each with
-- every waiting or leased job, which it takes for cheap as long as the tables are new to it.

-- Jobs that run: under a lease that exists, and their attempt has not ended. `place` is the order of the claim.
CREATE VIEW {schema}.running AS
SELECT r.id, j.queue_id, j.kind, j.payload, coalesce(r.priority, j.priority) AS priority, 'running'::text AS state, j.at_most_once,
       j.policy_id, j.retry_line, r.number AS attempt, coalesce(r.failures, 0) AS failures, coalesce(r.crashes, 0) AS crashes,
       coalesce(r.replays, 0) AS replays, j.created_at, coalesce(r.due_at, j.due_at) AS due_at,
       coalesce(r.first_attempt_at, r.claimed_at) AS first_attempt_at, r.claimed_at, coalesce(r.previous_delay, 0) AS previous_delay,
       j.start_by, j.timeout_ms, j.idempotency_key, r.is_cancelled AS cancel_requested, r.lease_id, e.error_class, e.error, j.http,
       j.webhook, j.schedule_id, j.parent_id, j.traceparent, j.limit_key, r.place
FROM (
    SELECT l.id AS lease_id, l.claimed_at, h.id, coalesce(h.attempt, 1) AS number, h.failures, h.crashes, h.replays, h.previous_delay,
           h.first_attempt_at, h.due_at, h.priority, coalesce(h.id = ANY (l.cancels), false) AS is_cancelled, h.place
    FROM {schema}.leases l
    CROSS JOIN LATERAL unnest(l.job_ids, l.attempts, l.failures, l.crashes, l.replays, l.previous_delays, l.first_attempts_at, l.dues_at,
                              l.priorities)
        WITH ORDINALITY AS h (id, attempt, failures, crashes, replays, previous_delay, first_attempt_at, due_at, priority, place)
) r
CROSS JOIN LATERAL (SELECT * FROM {schema}.jobs b WHERE b.id = r.id OFFSET 0) j
LEFT JOIN LATERAL (
    SELECT a.error_class, a.error
    FROM {schema}.attempts a
    WHERE a.job_id = r.id AND a.error_class IS NOT NULL
    ORDER BY a.number DESC
    LIMIT 1
) e ON r.number > 1
WHERE NOT EXISTS (SELECT FROM {schema}.attempts a WHERE a.job_id = r.id AND a.number = r.number);

-- Waiting jobs with all that is known of them.
CREATE VIEW {schema}.waiters AS
SELECT w.id, w.queue_id, j.kind, j.payload, w.priority, CASE WHEN w.is_retrying THEN 'retrying' ELSE 'queued' END AS state,
       j.at_most_once, j.policy_id, j.retry_line, coalesce(w.attempt, 0) AS attempt, coalesce(w.failures, 0) AS failures,
       coalesce(w.crashes, 0) AS crashes, coalesce(w.replays, 0) AS replays, j.created_at, w.due_at, w.first_attempt_at, last.claimed_at,
       coalesce(w.previous_delay, 0) AS previous_delay, j.start_by, j.timeout_ms, j.idempotency_key, false AS cancel_requested,
       NULL::bigint AS lease_id, e.error_class, e.error, j.http, j.webhook, j.schedule_id, j.parent_id, j.traceparent,
       j.limit_key
FROM {schema}.waiting w
CROSS JOIN LATERAL (SELECT * FROM {schema}.jobs b WHERE b.id = w.id OFFSET 0) j
LEFT JOIN LATERAL (
    SELECT a.claimed_at FROM {schema}.attempts a WHERE a.job_id = w.id AND a.number = w.attempt
) last ON w.attempt > 0
LEFT JOIN LATERAL (
    SELECT a.error_class, a.error
    FROM {schema}.attempts a
    WHERE a.job_id = w.id AND a.error_class IS NOT NULL
    ORDER BY a.number DESC
    LIMIT 1
) e ON w.attempt > 0;

-- Every live job.
CREATE VIEW {schema}.live AS
SELECT v.id, v.queue_id, v.kind, v.payload, v.priority, v.state, v.at_most_once, v.policy_id, v.retry_line, v.attempt,
       v.failures, v.crashes, v.replays, v.created_at, v.due_at, v.first_attempt_at, v.claimed_at, v.previous_delay,
       v.start_by, v.timeout_ms, v.idempotency_key, v.cancel_requested, v.lease_id, v.error_class, v.error, v.http,
       v.webhook, v.schedule_id, v.parent_id, v.traceparent, v.limit_key FROM {schema}.waiters v
UNION ALL
SELECT v.id, v.queue_id, v.kind, v.payload, v.priority, v.state, v.at_most_once, v.policy_id, v.retry_line, v.attempt,
       v.failures, v.crashes, v.replays, v.created_at, v.due_at, v.first_attempt_at, v.claimed_at, v.previous_delay,
       v.start_by, v.timeout_ms, v.idempotency_key, v.cancel_requested, v.lease_id, v.error_class, v.error, v.http,
       v.webhook, v.schedule_id, v.parent_id, v.traceparent, v.limit_key FROM {schema}.running v;

-- Finished jobs.
CREATE VIEW {schema}.archive AS
SELECT o.job_id AS id, j.queue_id, j.kind, j.payload, coalesce(o.priority, j.priority) AS priority, o.state, o.reason, j.at_most_once,
       j.policy_id, j.retry_line, o.number AS attempt, coalesce(o.failures, o.retry, 0) AS failures, coalesce(o.crashes, 0) AS crashes,
       coalesce(o.replays, 0) AS replays, j.created_at, coalesce(o.due_at, j.due_at) AS due_at,
       CASE WHEN o.state = 'succeeded' THEN coalesce(o.first_attempt_at, o.claimed_at) ELSE o.first_attempt_at END AS first_attempt_at,
       o.claimed_at, o.ended_at AS finished_at, coalesce(o.previous_delay, 0) AS previous_delay, j.start_by, j.timeout_ms,
       j.idempotency_key, coalesce(o.cancel_requested, false) AS cancel_requested, coalesce(o.error_class, e.error_class) AS error_class,
       CASE WHEN o.error_class IS NULL THEN e.error ELSE o.error END AS error, o.result, o.discarded_at, o.discard_reason, j.http,
       j.webhook, j.schedule_id, j.parent_id, j.traceparent, j.limit_key, o.fingerprint, o.message
FROM {schema}.attempts o
JOIN {schema}.jobs j ON j.id = o.job_id
LEFT JOIN LATERAL (
    SELECT a.error_class, a.error
    FROM {schema}.attempts a
    WHERE a.job_id = o.job_id AND a.error_class IS NOT NULL
    ORDER BY a.number DESC
    LIMIT 1
) e ON o.number > 1 AND o.error_class IS NULL
WHERE o.state IS NOT NULL;

-- Attempts with the words that plain successes leave out.
CREATE VIEW {schema}.ended_attempts AS
SELECT job_id, number, retry, coalesce(status, 'SUCCESS') AS status, started_at, finished_at, error_class, error, note, worker,
       next_run_at, delay_ms, coalesce(why, 'succeeded') AS why, lease_id, trace, coalesce(replay, 0) AS replay
FROM {schema}.attempts
WHERE number > 0;

CREATE VIEW {schema}.all_jobs AS
SELECT j.id, q.tenant, q.name AS queue, q.executor, j.kind, j.payload, j.priority, j.state, NULL::text AS reason,
       CASE WHEN j.at_most_once THEN 'AT_MOST_ONCE' ELSE 'AT_LEAST_ONCE' END AS delivery,
       coalesce(p.line, j.retry_line) AS retry, j.attempt, j.failures, j.crashes, j.replays,
       {schema}.moment(j.created_at) AS created_at, {schema}.moment(j.due_at) AS due_at,
       {schema}.moment(j.claimed_at) AS claimed_at, NULL::timestamptz AS finished_at,
       {schema}.moment(j.start_by) AS start_by, j.idempotency_key, j.cancel_requested,
       j.error_class, j.error, NULL::text AS result, NULL::timestamptz AS discarded_at, NULL::text AS discard_reason,
       j.schedule_id, j.parent_id
FROM {schema}.live j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.policies p ON p.id = j.policy_id
UNION ALL
SELECT j.id, q.tenant, q.name, q.executor, j.kind, j.payload, j.priority, j.state, j.reason,
       CASE WHEN j.at_most_once THEN 'AT_MOST_ONCE' ELSE 'AT_LEAST_ONCE' END,
       coalesce(p.line, j.retry_line), j.attempt, j.failures, j.crashes, j.replays,
       {schema}.moment(j.created_at), {schema}.moment(j.due_at), {schema}.moment(j.claimed_at),
       {schema}.moment(j.finished_at), {schema}.moment(j.start_by), j.idempotency_key, j.cancel_requested,
       j.error_class, j.error, j.result, {schema}.moment(j.discarded_at), j.discard_reason, j.schedule_id, j.parent_id
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.policies p ON p.id = j.policy_id;

CREATE VIEW {schema}.all_attempts AS
SELECT job_id, number AS attempt, retry,
       CASE replay WHEN 0 THEN '' ELSE 'Replay ' || replay || ': ' END
           || CASE status WHEN 'SNOOZED' THEN 'Snoozed' WHEN 'RELEASED' THEN 'Released'
               ELSE CASE retry WHEN 0 THEN 'Initial' ELSE 'Retry #' || retry END END AS label,
       status, {schema}.moment(started_at) AS started_at, {schema}.moment(finished_at) AS finished_at,
       finished_at - started_at AS duration_ms, error_class, error, note, worker,
       {schema}.moment(next_run_at) AS next_run_at, delay_ms, why, trace, replay
FROM {schema}.ended_attempts;

CREATE VIEW {schema}.dead_letters AS
SELECT j.id, q.tenant, q.name AS queue, q.executor, j.kind, j.payload, j.reason, j.error_class, j.error, j.fingerprint,
       j.attempt, j.failures, {schema}.moment(j.created_at) AS created_at, {schema}.moment(j.finished_at) AS finished_at
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.state = 'failed' AND j.discarded_at IS NULL;

-- `read_ct` counts attempts that ended, so the current one is `read_ct + 1`; `vt` is when the
-- message is visible (again): its due time, or while it runs the end of its lease.
CREATE VIEW {schema}.messages AS
SELECT q.name AS queue, j.id AS msg_id,
       CASE WHEN j.state = 'running' THEN j.attempt - 1 ELSE j.attempt END AS read_ct,
       {schema}.moment(j.created_at) AS enqueued_at,
       {schema}.moment(CASE WHEN j.state = 'running' THEN coalesce(l.expires_at, j.due_at) ELSE j.due_at END) AS vt,
       q.tenant, j.kind, j.payload AS message
FROM {schema}.live j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.lease_ends l ON l.id = j.lease_id;

-- Schedules as a scheduler's users read them. `next_execution_time` is when the last run is tried again, else the next
-- firing.
CREATE VIEW {schema}.job_schedules AS
SELECT s.id AS job_id, s.tenant, s.cadence AS schedule, s.zone AS time_zone, t.job -> 'http' ->> 'url' AS api,
       t.job ->> 'kind' AS kind, t.job ->> 'delivery' AS type, NOT s.one_shot AS is_recurring,
       CASE WHEN t.job ->> 'delivery' = 'AT_MOST_ONCE' THEN 0
            ELSE substring(t.job ->> 'policy' FROM 'retries=([0-9]+)')::integer END AS max_retry_count,
       s.paused AS is_paused,
       {schema}.moment(coalesce(w.due_at, CASE WHEN NOT s.paused THEN s.next_at END)) AS next_execution_time,
       {schema}.moment(s.last_at) AS last_execution_time, s.last_job AS last_run_id, {schema}.moment(s.created_at) AS created_at
FROM {schema}.schedules s
CROSS JOIN LATERAL (SELECT s.template::json AS job) t
LEFT JOIN {schema}.waiting w ON w.id = s.last_job AND w.is_retrying;

-- One row for each attempt that has ended. `job_id` is the schedule's id, or that of a job without a schedule; `run_id` is
-- the job that ran.
CREATE VIEW {schema}.job_executions AS
SELECT coalesce(j.schedule_id, a.job_id) AS job_id, a.job_id AS run_id, a.number AS attempt, a.retry AS retry_count, a.status,
       {schema}.moment(a.started_at) AS execution_time, a.finished_at - a.started_at AS duration_ms, a.error_class, a.error, a.note,
       {schema}.moment(a.next_run_at) AS next_execution_time, a.worker
FROM {schema}.ended_attempts a
JOIN {schema}.jobs j ON j.id = a.job_id;
