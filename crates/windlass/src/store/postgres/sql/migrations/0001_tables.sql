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
    line text NOT NULL CHECK (line <> '')
);
-- By hash, because a line may be longer than a row of an index. Two nodes that add one at the same time may add it twice.
CREATE INDEX policies_line ON {schema}.policies (hashtextextended(line, 0));

-- What is known of a job when it is stored: written once, and neither moved nor changed by claims, retries or the
-- finish. (Replays change `start_by`; the first claim of a job from the SQL function fixes policy and webhook.) Rows of
-- up to a page stay whole: payloads are read with every claim, and moving or compressing them costs more than it saves.
CREATE TABLE {schema}.jobs (
    id              bigint PRIMARY KEY DEFAULT nextval('{schema}.ids'),
    queue_id        bigint NOT NULL,
    due_at          bigint NOT NULL,
    created_at      bigint NOT NULL,
    policy_id       bigint,
    priority        smallint NOT NULL CHECK (priority BETWEEN -2 AND 2),
    at_most_once    boolean NOT NULL DEFAULT false,
    kind            text NOT NULL,
    payload         text NOT NULL,
    start_by        bigint,
    timeout_ms      bigint CHECK (timeout_ms >= 0),
    schedule_id     bigint,
    parent_id       bigint,
    idempotency_key text,
    http            text,
    webhook         text,
    traceparent     text,
    limit_key       text CHECK (limit_key <> ''),
    retry_line      text
) WITH (
    toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX jobs_schedule ON {schema}.jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_parent ON {schema}.jobs (parent_id) WHERE parent_id IS NOT NULL;

-- Jobs that wait for an attempt. A claim deletes the row; a retry or replay inserts one. It is narrow, because every job
-- passes through it. A job that was never claimed, changed or replayed has nothing but NULL from `attempt` on.
CREATE TABLE {schema}.waiting (
    id               bigint PRIMARY KEY,
    queue_id         bigint NOT NULL,
    due_at           bigint NOT NULL,
    priority         smallint NOT NULL CHECK (priority BETWEEN -2 AND 2),
    at_most_once     boolean NOT NULL,
    is_retrying      boolean NOT NULL DEFAULT false,
    -- Only before the first attempt: afterwards it no longer matters.
    start_by         bigint,
    attempt          integer,
    failures         integer,
    crashes          integer,
    replays          integer,
    previous_delay   bigint,
    first_attempt_at bigint,
    -- The gate that has refused it: it is parked, outside the index that claims read.
    gate_id          bigint,
    CHECK (attempt >= 0 AND failures >= 0 AND crashes >= 0 AND replays >= 0 AND previous_delay >= 0)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX waiting_claim ON {schema}.waiting (queue_id, priority DESC, due_at, id) WHERE gate_id IS NULL;
CREATE INDEX waiting_parked ON {schema}.waiting (gate_id, queue_id, priority DESC, due_at, id) WHERE gate_id IS NOT NULL;
CREATE INDEX waiting_parked_queue ON {schema}.waiting (queue_id) WHERE gate_id IS NOT NULL;
CREATE INDEX waiting_suspects ON {schema}.waiting (queue_id, priority DESC, due_at, id) WHERE crashes > 0;
CREATE INDEX waiting_start_by ON {schema}.waiting (start_by) WHERE start_by IS NOT NULL;

-- Gates: limits, holds, circuit breakers and retry budgets of queues and limit keys. Queues without any have no rows here.
CREATE TABLE {schema}.gates (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The tenant, or * for the queues of that name of all tenants.
    -- Names compare faster by their bytes.
    tenant     text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    queue      text COLLATE "C" NOT NULL CHECK (queue <> ''),
    scope      text COLLATE "C" NOT NULL CHECK (scope IN ('queue', 'key', 'replay')),
    -- Empty for a whole queue, and for jobs without a key. For a replay: its rate and what was asked for.
    key        text COLLATE "C" NOT NULL CHECK (scope <> 'queue' OR key = ''),
    -- How many attempts run. Claims add to it, commits subtract, without a look at the rest.
    in_use     integer NOT NULL CHECK (in_use >= 0),
    -- Everything else: its rate, hold, breaker and budget.
    state      text NOT NULL,
    -- Whether it was held or its breaker open when it was last written.
    is_shut    boolean NOT NULL,
    -- Whether jobs may be parked behind it. Here, because a commit that waited for this row sees it as it is now.
    has_parked boolean NOT NULL,
    -- When a claim should look at the jobs parked behind it; NULL: when an attempt ends, or nothing is parked.
    opens_at   bigint,
    changed_at bigint NOT NULL,
    UNIQUE (tenant, queue, scope, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX gates_open ON {schema}.gates (queue, tenant, opens_at) WHERE opens_at IS NOT NULL;
CREATE INDEX gates_shut ON {schema}.gates (id) WHERE is_shut;

-- Live jobs that a replay with a rate sent again: they pass the gate with this key, too. Rows of finished jobs are removed.
CREATE TABLE {schema}.replayed (
    job_id   bigint PRIMARY KEY,
    queue_id bigint NOT NULL,
    gate_key text NOT NULL
);
CREATE INDEX replayed_queue ON {schema}.replayed (queue_id);

-- The gates that the jobs of a lease have passed: `job:gate,gate;job:gate`, a probe with `!`. What an attempt uses comes
-- back when it ends, which its lease and the key of `attempts` let happen once. Leases of queues without gates have no row.
CREATE TABLE {schema}.passes (
    lease_id bigint PRIMARY KEY,
    jobs     text NOT NULL CHECK (jobs <> '')
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
-- Trying to compress costs every claim, and gains little.
ALTER TABLE {schema}.passes ALTER COLUMN jobs SET STORAGE EXTERNAL;

-- Every attempt that has ended, written once. The row of a job's last attempt also says how the job ended: `state` and
-- the columns after it. A job that ended without any attempt has a row with the number 0. The key is part of the fence:
-- an attempt ends once.
--
-- NULL stands for what is usual: of an attempt, that it succeeded and left nothing else; of a job, what its row in `jobs`
-- says, no failures beyond `retry`, and no crashes, replays or delays.
CREATE TABLE {schema}.attempts (
    job_id           bigint NOT NULL,
    lease_id         bigint,
    claimed_at       bigint,
    started_at       bigint,
    finished_at      bigint,
    number           integer NOT NULL,
    retry            integer,
    worker           text,
    status           text CHECK (status IN ('SUCCESS', 'FAILED', 'SNOOZED', 'RELEASED')),
    why              text,
    next_run_at      bigint,
    delay_ms         bigint,
    error_class      text,
    error            text,
    note             text,
    trace            text,
    -- How often the job had been replayed: NULL is its first run.
    replay           integer,
    -- How the job ended.
    state            text CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    queue_id         bigint,
    ended_at         bigint,
    due_at           bigint,
    first_attempt_at bigint,
    previous_delay   bigint,
    failures         integer,
    crashes          integer,
    replays          integer,
    priority         smallint,
    cancel_requested boolean,
    reason           text CHECK (reason IN ('permanent', 'exhausted', 'deadline', 'expired', 'at_most_once', 'crash_loop')),
    result           text,
    fingerprint      text,
    message          text,
    discarded_at     bigint,
    discard_reason   text,
    PRIMARY KEY (job_id, number),
    CHECK (number >= 0 AND retry >= 0 AND delay_ms >= 0),
    CHECK (number = 0 OR started_at IS NOT NULL AND lease_id IS NOT NULL AND worker IS NOT NULL),
    CHECK ((state = 'failed') = (reason IS NOT NULL)),
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK (discarded_at IS NULL OR state = 'failed')
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 1
);
-- Retention is per queue and state, by age.
CREATE INDEX attempts_ended ON {schema}.attempts (queue_id, ended_at) WHERE state IN ('succeeded', 'cancelled');
CREATE INDEX attempts_failed ON {schema}.attempts (queue_id, ended_at) WHERE state = 'failed';
-- Pages of failed jobs and dead letters of all queues.
CREATE INDEX attempts_failed_jobs ON {schema}.attempts (job_id) WHERE state = 'failed';
CREATE INDEX attempts_dead ON {schema}.attempts (queue_id, job_id) WHERE state = 'failed' AND discarded_at IS NULL;

-- One row for all jobs of a claim, in the order they were claimed. A job runs while its lease exists and its attempt has
-- not ended. The arrays after `job_ids` say how the jobs waited, at the same places; they are NULL if none of the jobs
-- had been claimed, changed or replayed before, and so are the elements of such jobs. Only `cancels` ever changes: the
-- jobs that were asked to stop. Commits lock the row; renewals do not touch it.
CREATE TABLE {schema}.leases (
    id                bigint PRIMARY KEY,
    claimed_at        bigint NOT NULL,
    worker            text NOT NULL,
    job_ids           bigint[] NOT NULL,
    attempts          integer[],
    failures          integer[],
    crashes           integer[],
    replays           integer[],
    previous_delays   bigint[],
    first_attempts_at bigint[],
    dues_at           bigint[],
    priorities        smallint[],
    cancels           bigint[]
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
-- Trying to compress costs every claim, and gains little.
ALTER TABLE {schema}.leases ALTER COLUMN job_ids SET STORAGE EXTERNAL;

-- When leases run out: what renewals write.
CREATE TABLE {schema}.lease_ends (
    id         bigint PRIMARY KEY,
    expires_at bigint NOT NULL,
    length_ms  bigint NOT NULL CHECK (length_ms >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

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
    dead_letters text NOT NULL CHECK (dead_letters IN ('latest', 'all')),
    template   text NOT NULL,
    paused     boolean NOT NULL DEFAULT false,
    next_at    bigint,
    last_at    bigint,
    last_job   bigint,
    -- The run that failed last.
    last_dead  bigint,
    created_at bigint NOT NULL
);
CREATE INDEX schedules_due ON {schema}.schedules (next_at) WHERE NOT paused;
-- Schedules that fire once and have fired: the finish of a run looks for them.
CREATE INDEX schedules_spent ON {schema}.schedules (id) WHERE one_shot AND next_at IS NULL;

CREATE TABLE {schema}.settings (
    scope   text NOT NULL CHECK (scope IN ('queue', 'kind', 'policy', 'tenant', 'server', 'alert', 'secret', 'quota')),
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
    -- The kinds it has handlers for; NULL: all.
    kinds       text[],
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
    notified_at bigint,
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

-- What each commit added: inserted, never updated. Claims add what they `claimed`, and whatever ends the time of a dead
-- letter adds it to `undead`, without a kind: these two only affect balances. Deltas are soon folded into seconds, seconds into minutes, minutes
-- into hours. So reading a window takes a few rows, however busy it was.
CREATE TABLE {schema}.tally_deltas (
    at       bigint NOT NULL,
    queue_id bigint NOT NULL,
    kind     text NOT NULL,
    claimed  bigint NOT NULL DEFAULT 0,
    undead   bigint NOT NULL DEFAULT 0,
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

-- How many jobs of a queue were live, how many of them ran, and how many dead letters there were, when its deltas were
-- last removed. Adding the current deltas gives the present numbers, without counting a million jobs and without
-- commits that wait for each other.
CREATE TABLE {schema}.balances (
    queue_id bigint PRIMARY KEY,
    live     bigint NOT NULL,
    running  bigint NOT NULL,
    dead     bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Deltas that are deleted are added to their queue's balance, whatever deletes them.
CREATE FUNCTION {schema}.keep_balances() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    INSERT INTO {schema}.balances AS b (queue_id, live, running, dead)
    SELECT g.queue_id, sum(g.enqueued + g.replayed - g.succeeded - g.failed - g.cancelled), sum(g.claimed - g.attempts),
           sum(g.failed - g.undead)
    FROM gone g
    GROUP BY g.queue_id
    ORDER BY g.queue_id
    ON CONFLICT (queue_id) DO UPDATE
    SET live = b.live + excluded.live, running = b.running + excluded.running, dead = b.dead + excluded.dead;
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
