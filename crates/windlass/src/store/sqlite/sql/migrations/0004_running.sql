-- A claim no longer rewrites a job's row: what waits and what runs are narrow tables of their own. While a job runs, its row says how it
-- waited (its attempt is the one before), and windlass_running says under which lease and since when.
-- And an attempt stays where it was written, whether its job is live or archived.
DROP VIEW windlass_all_jobs;
DROP VIEW windlass_messages;
DROP VIEW windlass_all_attempts;
DROP VIEW windlass_ended_attempts;
-- Under another name, so that a program of before, still running, cannot store a job that nobody would claim.
CREATE TABLE windlass_live_jobs (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    -- 1: at most once.
    once INTEGER NOT NULL,
    -- queued or retrying
    state TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    claimed_at INTEGER,
    first_attempt_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    previous_delay INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    policy_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    start_by INTEGER,
    timeout INTEGER,
    idempotency_key TEXT,
    schedule_id INTEGER,
    parent_id INTEGER,
    traceparent TEXT,
    error_class TEXT,
    error TEXT,
    http TEXT,
    webhook TEXT,
    payload TEXT NOT NULL,
    -- A queue's lanes, in the order they are served: by priority, each for at-least-once and at-most-once jobs, and for those
    -- and suspects (jobs that have lost a worker). One number, because SQLite compares one number much faster than four.
    lane INTEGER GENERATED ALWAYS AS (queue_id * 20 + (2 - priority) * 4 + once * 2 + (crashes > 0)) VIRTUAL
) STRICT;

-- What claims walk, a lane at a time, by due time and id.
CREATE TABLE windlass_waiting (
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (lane, due_at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_running (
    id INTEGER PRIMARY KEY,
    lease_id INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL
) STRICT;

INSERT INTO windlass_waiting (lane, due_at, id)
SELECT lane, due_at, id FROM windlass_jobs WHERE state <> 'running';

INSERT INTO windlass_running (id, lease_id, claimed_at)
SELECT id, lease_id, claimed_at FROM windlass_jobs WHERE state = 'running';

INSERT INTO windlass_live_jobs (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays,
    previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent,
    error_class, error, http, webhook, payload)
SELECT id, queue_id, priority, once, iif(state <> 'running', state, iif(failures > 0, 'retrying', 'queued')), due_at,
    attempt - (state = 'running'), claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload
FROM windlass_jobs;
DROP TABLE windlass_jobs;

-- Every index costs every insert and finish: there are no others than these.
CREATE INDEX windlass_jobs_start_by ON windlass_live_jobs (start_by)
    WHERE start_by IS NOT NULL AND first_attempt_at IS NULL;
CREATE INDEX windlass_jobs_schedule ON windlass_live_jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX windlass_jobs_parent ON windlass_live_jobs (parent_id) WHERE parent_id IS NOT NULL;

INSERT INTO windlass_archive_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker,
    next_run_at, delay, why)
SELECT job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why
FROM windlass_attempts;
DROP TABLE windlass_attempts;
ALTER TABLE windlass_archive_attempts RENAME TO windlass_attempts;

-- Attempts that have ended, wherever they are kept.
CREATE VIEW windlass_ended_attempts AS
SELECT job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why
FROM windlass_attempts
UNION ALL
SELECT id, attempt, last_lease_id, last_retry, 'SUCCESS', last_started_at, last_finished_at, NULL, NULL, NULL, last_worker, NULL, NULL,
    'succeeded'
FROM windlass_archive
WHERE last_started_at IS NOT NULL;

CREATE VIEW windlass_all_attempts AS
SELECT job_id, number AS attempt, retry,
    CASE WHEN status = 'SNOOZED' THEN 'Snoozed' WHEN status = 'RELEASED' THEN 'Released' WHEN retry = 0 THEN 'Initial'
        ELSE 'Retry #' || retry END AS label,
    status,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
    finished_at - started_at AS duration_ms, error_class, error, note, worker,
    strftime('%Y-%m-%dT%H:%M:%fZ', next_run_at / 1000.0, 'unixepoch') AS next_run_at, delay AS delay_ms, why
FROM windlass_ended_attempts;

-- Live jobs as they are now.
CREATE VIEW windlass_live AS
SELECT j.id, j.queue_id, j.priority, j.once, iif(r.id IS NULL, j.state, 'running') AS state, j.due_at,
    j.attempt + (r.id IS NOT NULL) AS attempt, coalesce(r.claimed_at, j.claimed_at) AS claimed_at,
    coalesce(j.first_attempt_at, r.claimed_at) AS first_attempt_at, j.failures, j.crashes, j.replays, j.previous_delay,
    j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by, j.timeout, j.idempotency_key, j.schedule_id, j.parent_id,
    j.traceparent, j.error_class, j.error, j.http, j.webhook, j.payload, r.lease_id
FROM windlass_live_jobs j
LEFT JOIN windlass_running r ON r.id = j.id;

CREATE VIEW windlass_all_jobs AS
SELECT j.id, q.tenant, q.name AS queue, q.executor, j.kind, j.state, NULL AS reason, j.priority,
    iif(j.once, 'AT_MOST_ONCE', 'AT_LEAST_ONCE') AS delivery, p.line AS policy, j.attempt, j.failures, j.crashes, j.replays,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.due_at / 1000.0, 'unixepoch') AS due_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.claimed_at / 1000.0, 'unixepoch') AS claimed_at,
    NULL AS finished_at, NULL AS discarded_at,
    j.idempotency_key, j.cancel_requested, j.schedule_id, j.parent_id, j.error_class, j.error, j.payload, NULL AS result
FROM windlass_live j
JOIN windlass_queues q ON q.id = j.queue_id
JOIN windlass_policies p ON p.id = j.policy_id
UNION ALL
SELECT a.id, q.tenant, q.name, q.executor, a.kind, a.state, a.reason, a.priority,
    iif(a.once, 'AT_MOST_ONCE', 'AT_LEAST_ONCE'), p.line, a.attempt, a.failures, a.crashes, a.replays,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.due_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.claimed_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', a.discarded_at / 1000.0, 'unixepoch'),
    a.idempotency_key, a.cancel_requested, a.schedule_id, a.parent_id, a.error_class, a.error, a.payload, a.result
FROM windlass_archive a
JOIN windlass_queues q ON q.id = a.queue_id
JOIN windlass_policies p ON p.id = a.policy_id;

-- `read_ct` counts attempts that have ended, so the current one is `read_ct + 1`; `vt` is when the message is visible again.
CREATE VIEW windlass_messages AS
SELECT q.tenant, q.name AS queue, j.id AS msg_id,
    j.attempt AS read_ct,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000.0, 'unixepoch') AS enqueued_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(l.expires_at, j.due_at) / 1000.0, 'unixepoch') AS vt,
    j.payload AS message
FROM windlass_live_jobs j
JOIN windlass_queues q ON q.id = j.queue_id
LEFT JOIN windlass_running r ON r.id = j.id
LEFT JOIN windlass_leases l ON l.id = r.lease_id;
