-- The tables. What a job is, is written once (windlass_jobs); where it stands is in narrow tables beside it: live jobs
-- in windlass_live, finished ones in windlass_outcomes. Times and spans are whole milliseconds. Constraints on hot rows
-- use OR: for an IN list of more than two values, SQLite builds a temporary table.

-- Ids of jobs and schedules come from one sequence and are never reused, even after pruning.
CREATE TABLE windlass_sequence (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL CHECK (last >= 0)
) STRICT;
INSERT INTO windlass_sequence (one, last) VALUES (1, 0);

CREATE TABLE windlass_queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    name TEXT NOT NULL CHECK (name <> ''),
    executor TEXT NOT NULL CHECK (executor IN ('worker', 'http')),
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    created_at INTEGER NOT NULL,
    -- Since when it is paused; until when replays with a rate are due.
    paused_at INTEGER,
    paced_until INTEGER,
    UNIQUE (tenant, name, executor)
) STRICT;
CREATE INDEX windlass_queues_paused ON windlass_queues (id) WHERE paused = 1;

-- Each policy once, as its canonical line; jobs carry the id.
CREATE TABLE windlass_policies (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    line TEXT NOT NULL UNIQUE CHECK (line <> '')
) STRICT;

-- What a job is, from its enqueue until it is pruned. No attempt rewrites or moves this row, however large it is.
CREATE TABLE windlass_jobs (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN -2 AND 2),
    at_most_once INTEGER NOT NULL CHECK (at_most_once BETWEEN 0 AND 1),
    created_at INTEGER NOT NULL,
    policy_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    timeout_ms INTEGER,
    idempotency_key TEXT,
    traceparent TEXT,
    limit_key TEXT,
    http TEXT,
    webhook TEXT,
    payload TEXT NOT NULL
) STRICT;

-- Live jobs. While a job runs, it has a lease, and attempt is the number of the previous attempt: a claim writes only
-- the lease and when it was granted. The view windlass_live_jobs shows jobs as they are now.
CREATE TABLE windlass_live (
    id INTEGER PRIMARY KEY,
    -- A queue's lanes, in the order they are served: by priority; in each, at-least-once and at-most-once jobs; of
    -- both, those that never lost a worker and suspects (jobs that have):
    -- queue_id * 20 + (2 - priority) * 4 + at_most_once * 2 + (crashes > 0).
    -- One number, because SQLite compares one number much faster than four.
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    start_by INTEGER,
    schedule_id INTEGER,
    parent_id INTEGER,
    lease_id INTEGER,
    claimed_at INTEGER,
    first_attempt_at INTEGER,
    attempt INTEGER NOT NULL DEFAULT 0,
    is_retrying INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    replays INTEGER NOT NULL DEFAULT 0,
    previous_delay INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    error_class TEXT,
    error TEXT,
    -- None is negative; the two flags are 0 or 1. Combined, because every insert pays for each comparison.
    CHECK ((attempt | failures | crashes | replays | previous_delay) >= 0),
    CHECK ((is_retrying | cancel_requested) BETWEEN 0 AND 1),
    CHECK (lease_id IS NULL OR claimed_at IS NOT NULL)
) STRICT;
-- Every index slows every insert and finish, so there are only these.
CREATE INDEX windlass_live_start_by ON windlass_live (start_by) WHERE start_by IS NOT NULL AND first_attempt_at IS NULL;
CREATE INDEX windlass_live_schedule ON windlass_live (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX windlass_live_parent ON windlass_live (parent_id) WHERE parent_id IS NOT NULL;

-- Waiting jobs in the order that claims read them: one lane at a time, by due time and id. Claims delete from there.
CREATE TABLE windlass_waiting (
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (lane, due_at, id)
) STRICT, WITHOUT ROWID;
-- How many jobs wait in each lane, so that nobody has to count them; the parked ones of queue n in lane -n. Only one
-- transaction writes at a time, so no other waits for these rows.
CREATE TABLE windlass_lanes (
    lane INTEGER PRIMARY KEY,
    waiting INTEGER NOT NULL
) STRICT;

-- Gates: limits, holds, circuit breakers and retry budgets of queues and limit keys. Queues without any have no rows here.
CREATE TABLE windlass_gates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The tenant, or * for the queues of that name of all tenants.
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    queue TEXT NOT NULL CHECK (queue <> ''),
    scope TEXT NOT NULL CHECK (scope IN ('queue', 'key', 'replay')),
    -- Empty for a whole queue, and for jobs without a key. For a replay: its rate and what was asked for.
    key TEXT NOT NULL CHECK (scope <> 'queue' OR key = ''),
    -- How many attempts run. Claims add to it, commits subtract, without a look at the rest.
    in_use INTEGER NOT NULL CHECK (in_use >= 0),
    -- Everything else: its rate, hold, breaker and budget.
    state TEXT NOT NULL,
    -- Whether it was held or its breaker open when it was last written.
    is_shut INTEGER NOT NULL CHECK (is_shut IN (0, 1)),
    -- Whether jobs may be parked behind it.
    has_parked INTEGER NOT NULL CHECK (has_parked IN (0, 1)),
    -- When a claim should look at the jobs parked behind it; NULL: when an attempt ends, or nothing is parked.
    opens_at INTEGER,
    changed_at INTEGER NOT NULL,
    UNIQUE (tenant, queue, scope, key)
) STRICT;
CREATE INDEX windlass_gates_open ON windlass_gates (queue, tenant, opens_at) WHERE opens_at IS NOT NULL;
CREATE INDEX windlass_gates_shut ON windlass_gates (id) WHERE is_shut = 1;
-- Due jobs that a gate has refused. They are live, but in none of the lanes that claims read.
CREATE TABLE windlass_parked (
    gate_id INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (gate_id, lane, due_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_parked_id ON windlass_parked (id);
-- Live jobs that a replay with a rate sent again: they pass the gate with this key, too. Rows of finished jobs are removed.
CREATE TABLE windlass_replayed (
    job_id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    gate_key TEXT NOT NULL
) STRICT;
CREATE INDEX windlass_replayed_queue ON windlass_replayed (queue_id);
-- The gates that the jobs of a lease have passed: `job:gate,gate;job:gate`, a probe with `!`. What an attempt uses comes
-- back when it ends, which happens once under its lease. Leases of queues without gates have no row.
CREATE TABLE windlass_passes (
    lease_id INTEGER PRIMARY KEY,
    jobs TEXT NOT NULL CHECK (jobs <> '')
) STRICT;

-- How finished jobs ended. Most end with an attempt that left nothing but its success: that one is kept here, in the
-- columns last_…, because a row of its own would be an eighth of the total cost of a job. All other attempts are rows
-- of windlass_attempts. The view windlass_archive shows finished jobs.
CREATE TABLE windlass_outcomes (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
    finished_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    claimed_at INTEGER,
    first_attempt_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    previous_delay INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    start_by INTEGER,
    schedule_id INTEGER,
    parent_id INTEGER,
    error_class TEXT,
    error TEXT,
    reason TEXT,
    fingerprint TEXT,
    discarded_at INTEGER CHECK (discarded_at IS NULL OR state = 'failed'),
    discard_reason TEXT,
    result TEXT,
    last_retry INTEGER,
    last_started_at INTEGER,
    last_finished_at INTEGER,
    last_lease_id INTEGER,
    last_worker TEXT,
    CHECK ((attempt | failures | crashes | replays | previous_delay) >= 0),
    CHECK ((state = 'failed') = (reason IS NOT NULL)),
    CHECK ((last_started_at IS NULL) = (last_worker IS NULL))
) STRICT;
-- Pruning walks it by age. The queue comes last: every batch would otherwise write to one page per queue.
CREATE INDEX windlass_outcomes_age ON windlass_outcomes (state, finished_at, queue_id);
CREATE INDEX windlass_outcomes_failed ON windlass_outcomes (id, discarded_at, queue_id, fingerprint, finished_at)
    WHERE state = 'failed';
CREATE INDEX windlass_outcomes_schedule ON windlass_outcomes (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX windlass_outcomes_parent ON windlass_outcomes (parent_id) WHERE parent_id IS NOT NULL;

-- Attempts that have ended, of live and archived jobs.
CREATE TABLE windlass_attempts (
    job_id INTEGER NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    lease_id INTEGER NOT NULL,
    retry INTEGER NOT NULL CHECK (retry >= 0),
    status TEXT NOT NULL CHECK (status = 'SUCCESS' OR status = 'FAILED' OR status = 'SNOOZED' OR status = 'RELEASED'),
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_class TEXT,
    error TEXT,
    note TEXT,
    worker TEXT NOT NULL,
    next_run_at INTEGER,
    delay_ms INTEGER CHECK (delay_ms >= 0),
    why TEXT NOT NULL,
    trace TEXT,
    -- How often the job had been replayed: 0 is its first run.
    replay INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, number),
    CHECK ((next_run_at IS NULL) = (delay_ms IS NULL))
) STRICT, WITHOUT ROWID;

-- One row per claimed batch (or job): renewing writes these, not the jobs.
CREATE TABLE windlass_leases (
    id INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    -- By the clock, for display. It is over at `ends_at_boot`, in milliseconds since the machine started.
    expires_at INTEGER NOT NULL,
    ends_at_boot INTEGER NOT NULL,
    length_ms INTEGER NOT NULL CHECK (length_ms >= 0),
    -- Comma-separated ids.
    job_ids TEXT NOT NULL CHECK (job_ids <> '')
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
CREATE INDEX windlass_keys_expires ON windlass_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE windlass_schedules (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    cadence TEXT NOT NULL,
    zone TEXT NOT NULL,
    one_shot INTEGER NOT NULL CHECK (one_shot IN (0, 1)),
    overlap TEXT NOT NULL CHECK (overlap IN ('skip', 'allow')),
    missed TEXT NOT NULL CHECK (missed IN ('one', 'skip')),
    dead_letters TEXT NOT NULL CHECK (dead_letters IN ('latest', 'all')),
    template TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_at INTEGER,
    last_at INTEGER,
    last_job INTEGER,
    -- The run that failed last.
    last_dead INTEGER,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX windlass_schedules_due ON windlass_schedules (next_at) WHERE paused = 0 AND next_at IS NOT NULL;
CREATE INDEX windlass_schedules_ending ON windlass_schedules (id) WHERE one_shot = 1 AND next_at IS NULL;

CREATE TABLE windlass_settings (
    scope TEXT NOT NULL CHECK (scope IN ('queue', 'kind', 'policy', 'tenant', 'server', 'alert', 'secret', 'quota')),
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The node whose file or environment names the setting; empty if the API or the command line set it.
    node TEXT NOT NULL,
    value TEXT NOT NULL,
    -- Where in the file or environment, for display.
    origin TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    -- When the node last reported that it is alive.
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (scope, tenant, name, node)
) STRICT, WITHOUT ROWID;

-- The installation's id, drawn when the store is created. Ids that other systems see contain it, so that no two
-- installations repeat one.
CREATE TABLE windlass_installation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL CHECK (id <> '')
) STRICT;
INSERT INTO windlass_installation (one, id) VALUES (1, lower(hex(randomblob(6))));

-- How far the time of this file is ahead of the time since the machine started, and which start that was. All
-- processes that share the file use it.
CREATE TABLE windlass_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    ahead_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE windlass_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    -- Space-separated words.
    scopes TEXT NOT NULL,
    tenant TEXT,
    -- Space-separated names; null: all queues.
    queues TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- Browsers that have signed in with a token.
CREATE TABLE windlass_sessions (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    token TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_workers (
    worker TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    -- JSON: [["email",10],…]
    queues TEXT NOT NULL,
    -- JSON: the kinds it has handlers for; NULL: all.
    kinds TEXT,
    running INTEGER NOT NULL CHECK (running >= 0),
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE windlass_alerts (
    rule TEXT NOT NULL,
    measure TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- The tenant and the queue that were affected most, or empty.
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'firing', 'resolved')),
    incident INTEGER NOT NULL CHECK (incident >= 0),
    since INTEGER NOT NULL,
    fired_at INTEGER,
    resolved_at INTEGER,
    notified_at INTEGER,
    detail TEXT NOT NULL,
    PRIMARY KEY (rule, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE windlass_audits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    detail TEXT NOT NULL
) STRICT;

-- What happened, counted: commits insert deltas, which are folded into minutes and hours later.
CREATE TABLE windlass_tally_deltas (
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
CREATE TABLE windlass_tallies (
    span_ms INTEGER NOT NULL CHECK (span_ms IN (60000, 3600000)),
    start INTEGER NOT NULL CHECK (start % span_ms = 0),
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
    PRIMARY KEY (span_ms, start, queue_id, kind)
) STRICT, WITHOUT ROWID;

-- One row that health checks write to.
CREATE TABLE windlass_pulse (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    beat_at INTEGER NOT NULL
) STRICT;

-- Live jobs as they are now.
CREATE VIEW windlass_live_jobs AS
SELECT l.id, l.lane / 20 AS queue_id, j.priority, j.at_most_once,
    iif(l.lease_id IS NOT NULL, 'running', iif(l.is_retrying, 'retrying', 'queued')) AS state, l.due_at,
    l.attempt + (l.lease_id IS NOT NULL) AS attempt, l.claimed_at,
    coalesce(l.first_attempt_at, iif(l.lease_id IS NOT NULL, l.claimed_at, NULL)) AS first_attempt_at, l.failures,
    l.crashes, l.replays, l.previous_delay, l.cancel_requested, j.created_at, j.policy_id, j.kind, l.start_by,
    j.timeout_ms, j.idempotency_key, l.schedule_id, l.parent_id, j.traceparent, j.limit_key, l.error_class, l.error, j.http, j.webhook,
    j.payload
FROM windlass_live l
CROSS JOIN windlass_jobs j ON j.id = l.id;

-- Finished jobs.
CREATE VIEW windlass_archive AS
SELECT o.id, o.queue_id, j.priority, j.at_most_once, o.state, o.due_at, o.attempt, o.claimed_at, o.first_attempt_at,
    o.failures, o.crashes, o.replays, o.previous_delay, o.cancel_requested, j.created_at, j.policy_id, j.kind, o.start_by,
    j.timeout_ms, j.idempotency_key, o.schedule_id, o.parent_id, j.traceparent, j.limit_key, o.error_class, o.error, j.http, j.webhook,
    j.payload, o.finished_at, o.reason, o.fingerprint, o.discarded_at, o.discard_reason, o.result
FROM windlass_outcomes o
CROSS JOIN windlass_jobs j ON j.id = o.id;

-- Failed jobs that await manual action, along their index.
CREATE VIEW windlass_dead AS
SELECT o.id, o.queue_id, j.priority, j.at_most_once, o.state, o.due_at, o.attempt, o.claimed_at, o.first_attempt_at,
    o.failures, o.crashes, o.replays, o.previous_delay, o.cancel_requested, j.created_at, j.policy_id, j.kind, o.start_by,
    j.timeout_ms, j.idempotency_key, o.schedule_id, o.parent_id, j.traceparent, j.limit_key, o.error_class, o.error, j.http, j.webhook,
    j.payload, o.finished_at, o.reason, o.fingerprint, o.discarded_at, o.discard_reason, o.result
FROM windlass_outcomes o INDEXED BY windlass_outcomes_failed
CROSS JOIN windlass_jobs j ON j.id = o.id
WHERE o.state = 'failed' AND o.discarded_at IS NULL;

-- Attempts that have ended, wherever they are kept.
CREATE VIEW windlass_ended_attempts AS
SELECT job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at,
    delay_ms, why, trace, replay
FROM windlass_attempts
UNION ALL
SELECT id, attempt, last_lease_id, last_retry, 'SUCCESS', last_started_at, last_finished_at, NULL, NULL, NULL, last_worker,
    NULL, NULL, 'succeeded', NULL, replays
FROM windlass_outcomes
WHERE last_started_at IS NOT NULL;
