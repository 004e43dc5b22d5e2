-- Live work is small and hot, however long the history: jobs and attempts. Finished work is append-only: archive and
-- archive_attempts. Times and spans are whole milliseconds. Checks on hot rows are spelled with OR: SQLite makes a temporary
-- table for an IN of more than two.

-- Ids of jobs and schedules come from one sequence and are never used again, whatever is pruned.
CREATE TABLE windlass_sequence (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO windlass_sequence (only, last) VALUES (1, 0);

CREATE TABLE windlass_queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    executor TEXT NOT NULL CHECK (executor IN ('worker', 'http')),
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name, executor)
) STRICT;

-- Each policy once, as its canonical line; jobs carry the id.
CREATE TABLE windlass_policies (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    line TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE windlass_jobs (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN -2 AND 2),
    -- 1: at most once.
    once INTEGER NOT NULL CHECK (once IN (0, 1)),
    state TEXT NOT NULL CHECK (state = 'queued' OR state = 'running' OR state = 'retrying'),
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    lease_id INTEGER,
    claimed_at INTEGER,
    first_attempt_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    previous_delay INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
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
    lane INTEGER GENERATED ALWAYS AS (queue_id * 20 + (2 - priority) * 4 + once * 2 + (crashes > 0)) VIRTUAL,
    CHECK ((state = 'running') = (lease_id IS NOT NULL))
) STRICT;

-- Claims walk this one, a lane at a time, by due time and id. Claiming a job takes its entry away, so that finishing it needs
-- none. Every index costs every insert and finish: there are no others than these.
CREATE INDEX windlass_jobs_waiting ON windlass_jobs (lane, due_at) WHERE state <> 'running';
CREATE INDEX windlass_jobs_start_by ON windlass_jobs (start_by)
    WHERE start_by IS NOT NULL AND first_attempt_at IS NULL;
CREATE INDEX windlass_jobs_schedule ON windlass_jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX windlass_jobs_parent ON windlass_jobs (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE windlass_archive (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    once INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
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
    finished_at INTEGER NOT NULL,
    reason TEXT,
    fingerprint TEXT,
    discarded_at INTEGER,
    discard_reason TEXT,
    result TEXT,
    payload TEXT NOT NULL,
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;

-- Retention is per queue and state, by age.
CREATE INDEX windlass_archive_age ON windlass_archive (queue_id, state, finished_at);
CREATE INDEX windlass_archive_failed ON windlass_archive (id, discarded_at, queue_id, fingerprint, finished_at)
    WHERE state = 'failed';
CREATE INDEX windlass_archive_schedule ON windlass_archive (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX windlass_archive_parent ON windlass_archive (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE windlass_attempts (
    job_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    lease_id INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_class TEXT,
    error TEXT,
    note TEXT,
    worker TEXT NOT NULL,
    next_run_at INTEGER,
    delay INTEGER,
    why TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_archive_attempts (
    job_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    lease_id INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_class TEXT,
    error TEXT,
    note TEXT,
    worker TEXT NOT NULL,
    next_run_at INTEGER,
    delay INTEGER,
    why TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

-- One row per claimed batch (or job): renewing touches these, not the jobs.
CREATE TABLE windlass_leases (
    id INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    length INTEGER NOT NULL,
    -- Ids of the jobs it covers, with commas between.
    jobs TEXT NOT NULL
) STRICT;

CREATE TABLE windlass_keys (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    -- NULL: as long as the job is live.
    expires_at INTEGER,
    UNIQUE (tenant, key)
) STRICT;
CREATE INDEX windlass_keys_expiry ON windlass_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE windlass_schedules (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    cadence TEXT NOT NULL,
    zone TEXT NOT NULL,
    recurrence TEXT NOT NULL CHECK (recurrence IN ('recurring', 'one_shot')),
    overlap TEXT NOT NULL CHECK (overlap IN ('skip', 'allow')),
    missed TEXT NOT NULL CHECK (missed IN ('one', 'skip')),
    template TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_at INTEGER,
    last_at INTEGER,
    last_job INTEGER,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX windlass_schedules_due ON windlass_schedules (next_at) WHERE paused = 0 AND next_at IS NOT NULL;
CREATE INDEX windlass_schedules_ending ON windlass_schedules (id) WHERE recurrence = 'one_shot' AND next_at IS NULL;

CREATE TABLE windlass_settings (
    scope TEXT NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    -- Words with spaces between.
    scopes TEXT NOT NULL,
    tenant TEXT,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE windlass_workers (
    worker TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    -- JSON: [["email",10],…]
    queues TEXT NOT NULL,
    running INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE windlass_alerts (
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'firing', 'resolved')),
    incident INTEGER NOT NULL,
    since INTEGER NOT NULL,
    fired_at INTEGER,
    resolved_at INTEGER,
    detail TEXT NOT NULL,
    PRIMARY KEY (rule, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_audits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    count INTEGER NOT NULL,
    detail TEXT NOT NULL
) STRICT;

-- What happened, counted: insert-only deltas, later folded into minutes and hours (span in milliseconds).
CREATE TABLE windlass_tallies (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    enqueued INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    first_attempts INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    exhausted INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    postponed INTEGER NOT NULL,
    successful_retries INTEGER NOT NULL,
    backoff_ms INTEGER NOT NULL,
    run_ms INTEGER NOT NULL,
    pickup_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE windlass_tally_sums (
    span INTEGER NOT NULL CHECK (span IN (60000, 3600000)),
    at INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    enqueued INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    first_attempts INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    exhausted INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    postponed INTEGER NOT NULL,
    successful_retries INTEGER NOT NULL,
    backoff_ms INTEGER NOT NULL,
    run_ms INTEGER NOT NULL,
    pickup_ms INTEGER NOT NULL,
    PRIMARY KEY (span, at, queue_id, kind)
) STRICT, WITHOUT ROWID;

-- What health writes to, to see whether it can.
CREATE TABLE windlass_health (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    checked_at INTEGER NOT NULL
) STRICT;
