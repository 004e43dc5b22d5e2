-- The tables. Times are milliseconds since 1970, words are those of the glossary. CHECKs repeat what the types of the
-- program say; on tables that every job is written to they are few and cheap.
CREATE SEQUENCE {schema}.ids AS bigint;

CREATE TABLE {schema}.queues (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     text NOT NULL CHECK (tenant ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    name       text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
    executor   text NOT NULL CHECK (executor IN ('worker', 'http')),
    paused     boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL,
    -- Since when it is paused; until when replays with a rate are due.
    paused_at   bigint,
    paced_until bigint,
    UNIQUE (tenant, name, executor)
);

CREATE TABLE {schema}.policies (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    line text NOT NULL UNIQUE CHECK (line <> '')
);

-- Live jobs. A claim writes only state, attempt, lease_id, claimed_at and first_attempt_at. No index and no index
-- predicate may name one of these, and more than half of each page is free (a claimed row is a little wider), so that
-- claims are heap-only updates.
CREATE TABLE {schema}.jobs (
    id               bigint PRIMARY KEY DEFAULT nextval('{schema}.ids'),
    queue_id         bigint NOT NULL,
    due_at           bigint NOT NULL,
    created_at       bigint NOT NULL,
    policy_id        bigint,
    lease_id         bigint,
    claimed_at       bigint,
    first_attempt_at bigint,
    previous_delay   bigint NOT NULL DEFAULT 0,
    start_by         bigint,
    timeout_ms       bigint,
    schedule_id      bigint,
    parent_id        bigint,
    attempt          integer NOT NULL DEFAULT 0,
    failures         integer NOT NULL DEFAULT 0,
    crashes          integer NOT NULL DEFAULT 0,
    replays          integer NOT NULL DEFAULT 0,
    priority         smallint NOT NULL CHECK (priority BETWEEN -2 AND 2),
    at_most_once     boolean NOT NULL DEFAULT false,
    cancel_requested boolean NOT NULL DEFAULT false,
    state            text NOT NULL CHECK (state IN ('queued', 'running', 'retrying')),
    kind             text NOT NULL,
    payload          text NOT NULL,
    idempotency_key  text,
    error_class      text,
    error            text,
    http             text,
    webhook          text,
    traceparent      text,
    retry_line       text,
    CHECK ((state = 'running') = (lease_id IS NOT NULL)),
    CHECK (attempt >= 0 AND failures >= 0 AND crashes >= 0 AND replays >= 0 AND previous_delay >= 0 AND timeout_ms >= 0)
) WITH (
    fillfactor = 45, toast_tuple_target = 1024,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 2000,
    autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX jobs_claim ON {schema}.jobs (queue_id, priority DESC, due_at, id);
CREATE INDEX jobs_suspects ON {schema}.jobs (queue_id, priority DESC, due_at, id) WHERE crashes > 0;
CREATE INDEX jobs_start_by ON {schema}.jobs (start_by) WHERE start_by IS NOT NULL;
CREATE INDEX jobs_cancel_requested ON {schema}.jobs (id) WHERE cancel_requested;
CREATE INDEX jobs_schedule ON {schema}.jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_parent ON {schema}.jobs (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE {schema}.attempts (
    job_id      bigint NOT NULL,
    number      integer NOT NULL,
    retry       integer NOT NULL,
    started_at  bigint NOT NULL,
    finished_at bigint NOT NULL,
    next_run_at bigint,
    delay_ms    bigint,
    lease_id    bigint NOT NULL,
    status      text NOT NULL CHECK (status IN ('SUCCESS', 'FAILED', 'SNOOZED', 'RELEASED')),
    worker      text NOT NULL,
    why         text NOT NULL,
    error_class text,
    error       text,
    note        text,
    trace       text,
    -- How often the job had been replayed: 0 is its first run.
    replay      integer NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, number),
    CHECK (number >= 1 AND retry >= 0 AND delay_ms >= 0),
    CHECK ((next_run_at IS NULL) = (delay_ms IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- Finished jobs, by retention class and then by time, so that pruning means dropping partitions. Most jobs end with an
-- attempt that left nothing but its success. That attempt is kept in its job's row, as `last_…`: a row of its own, with
-- an index entry, would be a fifth of what finishing a job costs. All other attempts are rows.
CREATE TABLE {schema}.archive (
    class            text NOT NULL,
    id               bigint NOT NULL,
    queue_id         bigint NOT NULL,
    due_at           bigint NOT NULL,
    created_at       bigint NOT NULL,
    finished_at      bigint NOT NULL,
    policy_id        bigint,
    claimed_at       bigint,
    first_attempt_at bigint,
    previous_delay   bigint NOT NULL,
    start_by         bigint,
    timeout_ms       bigint,
    schedule_id      bigint,
    parent_id        bigint,
    discarded_at     bigint,
    last_started_at  bigint,
    last_finished_at bigint,
    last_lease_id    bigint,
    last_retry       integer,
    attempt          integer NOT NULL,
    failures         integer NOT NULL,
    crashes          integer NOT NULL,
    replays          integer NOT NULL,
    priority         smallint NOT NULL CHECK (priority BETWEEN -2 AND 2),
    at_most_once     boolean NOT NULL,
    cancel_requested boolean NOT NULL,
    state            text NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    reason           text CHECK (reason IN ('permanent', 'exhausted', 'deadline', 'expired', 'at_most_once', 'crash_loop')),
    kind             text NOT NULL,
    payload          text NOT NULL,
    idempotency_key  text,
    error_class      text,
    error            text,
    result           text,
    http             text,
    webhook          text,
    traceparent      text,
    retry_line       text,
    fingerprint      text,
    message          text,
    discard_reason   text,
    last_worker      text,
    CHECK ((state = 'failed') = (class = 'failed')),
    CHECK ((state = 'failed') = (reason IS NOT NULL)),
    CHECK (attempt >= 0 AND failures >= 0 AND crashes >= 0 AND replays >= 0 AND previous_delay >= 0 AND timeout_ms >= 0),
    CHECK (discarded_at IS NULL OR state = 'failed'),
    CHECK (last_started_at IS NULL OR state = 'succeeded')
) PARTITION BY LIST (class);
CREATE TABLE {schema}.archive_done PARTITION OF {schema}.archive FOR VALUES IN ('done') PARTITION BY RANGE (finished_at);
CREATE TABLE {schema}.archive_failed PARTITION OF {schema}.archive FOR VALUES IN ('failed') PARTITION BY RANGE (finished_at);
CREATE INDEX archive_id ON {schema}.archive (id);
CREATE INDEX archive_schedule ON {schema}.archive (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX archive_parent ON {schema}.archive (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX archive_dead ON {schema}.archive (queue_id, id) WHERE state = 'failed' AND discarded_at IS NULL;
CREATE INDEX archive_finished ON {schema}.archive USING brin (finished_at);

CREATE TABLE {schema}.archive_attempts (
    class           text NOT NULL,
    job_finished_at bigint NOT NULL,
    job_id          bigint NOT NULL,
    number          integer NOT NULL,
    retry           integer NOT NULL,
    started_at      bigint NOT NULL,
    finished_at     bigint NOT NULL,
    next_run_at     bigint,
    delay_ms        bigint,
    lease_id        bigint NOT NULL,
    status          text NOT NULL CHECK (status IN ('SUCCESS', 'FAILED', 'SNOOZED', 'RELEASED')),
    worker          text NOT NULL,
    why             text NOT NULL,
    error_class     text,
    error           text,
    note            text,
    trace           text,
    replay          integer NOT NULL DEFAULT 0,
    CHECK (number >= 1 AND retry >= 0 AND delay_ms >= 0)
) PARTITION BY LIST (class);
CREATE TABLE {schema}.archive_attempts_done PARTITION OF {schema}.archive_attempts FOR VALUES IN ('done') PARTITION BY RANGE (job_finished_at);
CREATE TABLE {schema}.archive_attempts_failed PARTITION OF {schema}.archive_attempts FOR VALUES IN ('failed') PARTITION BY RANGE (job_finished_at);
CREATE INDEX archive_attempts_job ON {schema}.archive_attempts (job_id, number);

CREATE TABLE {schema}.leases (
    id         bigint PRIMARY KEY,
    worker     text NOT NULL,
    expires_at bigint NOT NULL,
    length_ms  bigint NOT NULL CHECK (length_ms >= 0),
    job_ids    bigint[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
-- Random numbers do not compress: trying costs every claim.
ALTER TABLE {schema}.leases ALTER COLUMN job_ids SET STORAGE EXTERNAL;

CREATE TABLE {schema}.keys (
    tenant     text NOT NULL,
    key        text NOT NULL,
    job_id     bigint NOT NULL,
    -- NULL: as long as the job is live.
    expires_at bigint,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX keys_expires ON {schema}.keys (expires_at);

CREATE TABLE {schema}.schedules (
    id         bigint PRIMARY KEY DEFAULT nextval('{schema}.ids'),
    tenant     text NOT NULL,
    cadence    text NOT NULL,
    zone       text NOT NULL,
    one_shot   boolean NOT NULL,
    overlap    text NOT NULL CHECK (overlap IN ('skip', 'allow')),
    missed     text NOT NULL CHECK (missed IN ('one', 'skip')),
    template   text NOT NULL,
    paused     boolean NOT NULL DEFAULT false,
    next_at    bigint,
    last_at    bigint,
    last_job   bigint,
    created_at bigint NOT NULL
);
CREATE INDEX schedules_due ON {schema}.schedules (next_at) WHERE NOT paused;

CREATE TABLE {schema}.settings (
    scope   text NOT NULL CHECK (scope IN ('queue', 'kind', 'policy', 'tenant', 'server', 'alert')),
    tenant  text NOT NULL,
    name    text NOT NULL,
    -- The node whose file or environment names the setting; empty if the API or the command line set it.
    node    text NOT NULL,
    value   text NOT NULL,
    -- Where in the file or environment, for display.
    origin  text NOT NULL,
    set_at  bigint NOT NULL,
    -- When the node last reported that it is alive.
    seen_at bigint NOT NULL,
    PRIMARY KEY (scope, tenant, name, node)
);

-- The installation's id, drawn when the store is created. Ids that other systems see contain it, so that no two
-- installations repeat one.
CREATE TABLE {schema}.installation (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  text NOT NULL CHECK (id <> '')
);
INSERT INTO {schema}.installation (id) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 12));

CREATE TABLE {schema}.tokens (
    id         text PRIMARY KEY,
    name       text NOT NULL,
    hash       bytea NOT NULL CHECK (length(hash) = 32),
    scopes     text[] NOT NULL,
    tenant     text,
    -- Null: all queues.
    queues     text[],
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

-- Browsers that have signed in with a token.
CREATE TABLE {schema}.sessions (
    hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
    token      text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE {schema}.workers (
    worker      text PRIMARY KEY,
    host        text NOT NULL,
    version     text NOT NULL,
    queues      text[] NOT NULL,
    concurrency bigint[] NOT NULL,
    running     bigint NOT NULL CHECK (running >= 0),
    started_at  bigint NOT NULL,
    seen_at     bigint NOT NULL,
    CHECK (cardinality(queues) = cardinality(concurrency))
) WITH (fillfactor = 50);

CREATE TABLE {schema}.alerts (
    rule        text NOT NULL,
    measure     text NOT NULL,
    subject     text NOT NULL,
    -- The tenant and the queue that were affected most, or empty.
    tenant      text NOT NULL,
    queue       text NOT NULL,
    status      text NOT NULL CHECK (status IN ('pending', 'firing', 'resolved')),
    incident    bigint NOT NULL,
    since       bigint NOT NULL,
    fired_at    bigint,
    resolved_at bigint,
    detail      text NOT NULL,
    PRIMARY KEY (rule, subject)
);

CREATE TABLE {schema}.audits (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    by     text NOT NULL,
    action text NOT NULL,
    count  bigint NOT NULL CHECK (count >= 0),
    detail text NOT NULL
);

-- What each commit added: inserted, never updated. Deltas are soon folded into seconds, seconds into minutes, minutes
-- into hours. So reading a window takes a few rows, however busy it was.
CREATE TABLE {schema}.tally_deltas (
    at       bigint NOT NULL,
    queue_id bigint NOT NULL,
    kind     text NOT NULL,
    {tally_definitions}
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
CREATE TABLE {schema}.tallies (
    span_ms  bigint NOT NULL CHECK (span_ms IN (1000, 60000, 3600000)),
    start    bigint NOT NULL,
    queue_id bigint NOT NULL,
    kind     text NOT NULL,
    {tally_definitions},
    PRIMARY KEY (span_ms, start, queue_id, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);

-- How many live jobs a queue had when its deltas were last removed. Adding the current deltas gives the present number,
-- without counting a million jobs and without commits that wait for each other.
CREATE TABLE {schema}.balances (
    queue_id bigint PRIMARY KEY,
    live     bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Deltas that are deleted are added to their queue's balance, whatever deletes them.
CREATE FUNCTION {schema}.keep_balances() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    INSERT INTO {schema}.balances AS b (queue_id, live)
    SELECT g.queue_id, sum(g.enqueued + g.replayed - g.succeeded - g.failed - g.cancelled)
    FROM gone g
    GROUP BY g.queue_id
    ORDER BY g.queue_id
    ON CONFLICT (queue_id) DO UPDATE SET live = b.live + excluded.live;
    RETURN NULL;
END
$function$;

CREATE TRIGGER keep_balances AFTER DELETE ON {schema}.tally_deltas
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION {schema}.keep_balances();

-- One row that health checks write to.
CREATE TABLE {schema}.pulse (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    beat_at bigint NOT NULL
) WITH (fillfactor = 50);
