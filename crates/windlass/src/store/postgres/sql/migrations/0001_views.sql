-- Views for operators who use SQL. Their columns are stable and the same on SQLite; the columns of the tables may
-- change.
--   all_jobs        every job, live or archived
--   all_attempts    every attempt that has ended
--   dead_letters    failed jobs that await manual action
--   messages        live jobs as a message queue reads them: queue, msg_id, read_ct, enqueued_at, vt
CREATE FUNCTION {schema}.moment(ms bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' $$;

CREATE VIEW {schema}.all_jobs AS
SELECT j.id, q.tenant, q.name AS queue, q.executor, j.kind, j.payload, j.priority, j.state, NULL::text AS reason,
       CASE WHEN j.at_most_once THEN 'AT_MOST_ONCE' ELSE 'AT_LEAST_ONCE' END AS delivery,
       coalesce(p.line, j.retry_line) AS retry, j.attempt, j.failures, j.crashes, j.replays,
       {schema}.moment(j.created_at) AS created_at, {schema}.moment(j.due_at) AS due_at,
       {schema}.moment(j.claimed_at) AS claimed_at, NULL::timestamptz AS finished_at,
       {schema}.moment(j.start_by) AS start_by, j.idempotency_key, j.cancel_requested,
       j.error_class, j.error, NULL::text AS result, NULL::timestamptz AS discarded_at, NULL::text AS discard_reason,
       j.schedule_id, j.parent_id
FROM {schema}.jobs j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.policies p ON p.id = j.policy_id
UNION ALL
SELECT j.id, q.tenant, q.name, q.executor, j.kind, j.payload, j.priority, j.state, j.reason,
       CASE WHEN j.at_most_once THEN 'AT_MOST_ONCE' ELSE 'AT_LEAST_ONCE' END,
       coalesce(p.line, j.retry_line), j.attempt, j.failures, j.crashes, j.replays,
       {schema}.moment(j.created_at), {schema}.moment(j.due_at), {schema}.moment(j.claimed_at),
       {schema}.moment(j.finished_at), {schema}.moment(j.start_by), j.idempotency_key, j.cancel_requested,
       j.error_class, j.error, j.result, {schema}.moment(j.discarded_at), j.discard_reason, j.schedule_id, j.parent_id
FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.policies p ON p.id = j.policy_id;

-- The attempts of archived jobs, in rows of their own or in their job's.
CREATE VIEW {schema}.ended_attempts AS
SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why, lease_id,
       trace, replay
FROM {schema}.archive_attempts
UNION ALL
SELECT id, attempt, last_retry, 'SUCCESS', last_started_at, last_finished_at, NULL, NULL, NULL, last_worker, NULL, NULL, 'succeeded',
       last_lease_id, NULL, replays
FROM {schema}.archive
WHERE last_started_at IS NOT NULL;

CREATE VIEW {schema}.all_attempts AS
SELECT job_id, number AS attempt, retry,
       CASE replay WHEN 0 THEN '' ELSE 'Replay ' || replay || ': ' END
           || CASE status WHEN 'SNOOZED' THEN 'Snoozed' WHEN 'RELEASED' THEN 'Released'
               ELSE CASE retry WHEN 0 THEN 'Initial' ELSE 'Retry #' || retry END END AS label,
       status, {schema}.moment(started_at) AS started_at, {schema}.moment(finished_at) AS finished_at,
       finished_at - started_at AS duration_ms, error_class, error, note, worker,
       {schema}.moment(next_run_at) AS next_run_at, delay_ms, why, trace, replay
FROM (
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why,
           trace, replay
    FROM {schema}.attempts
    UNION ALL
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why,
           trace, replay
    FROM {schema}.ended_attempts
) a;

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
FROM {schema}.jobs j JOIN {schema}.queues q ON q.id = j.queue_id LEFT JOIN {schema}.leases l ON l.id = j.lease_id;
