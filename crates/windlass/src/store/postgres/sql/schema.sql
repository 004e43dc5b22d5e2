-- name: session
-- Limits and plan settings of a connection that goes straight to the server. Plans are kept and use indexes: a plan made
-- while a table was empty must not scan it when it is full.
SET statement_timeout = 30000;
SET lock_timeout = 10000;
SET idle_in_transaction_session_timeout = 60000;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off

-- name: begin
-- A transaction with the same settings, for it alone: behind a pooler, a session belongs to others too.
BEGIN;
SELECT set_config('statement_timeout', '30000', true), set_config('lock_timeout', '10000', true),
       set_config('idle_in_transaction_session_timeout', '60000', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)

-- name: begin_reading
-- A transaction for statements whose best plan depends on their parameters: they are planned each time.
BEGIN READ ONLY;
SELECT set_config('statement_timeout', '30000', true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'off', true),
       set_config('jit', 'off', true)

-- name: begin_snapshot
-- A transaction that only reads, and whose statements all see the same jobs. The level must come before any statement.
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT set_config('statement_timeout', '30000', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)

-- name: now
-- The server's time.
SELECT {now} AS now

-- name: notify
-- Notifies the fleet that jobs may have become due.
SELECT pg_notify('{channel}', '')

-- name: pulse
-- A real write, and the server's time.
INSERT INTO {schema}.pulse AS p (one, beat_at) VALUES (true, {now})
ON CONFLICT (one) DO UPDATE SET beat_at = excluded.beat_at
RETURNING beat_at AS now

-- name: server
-- The settings that affect durability.
SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit, current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_standby_names') AS standby_names, pg_is_in_recovery() AS is_standby,
       (SELECT count(*) FROM pg_stat_replication) AS replicas,
       (SELECT count(*) FROM {schema}.lease_ends l WHERE l.expires_at < {now} - $2::bigint) AS stray_leases

-- name: migrations_table
-- Where migrations are recorded. The lock lasts as long as the transaction: one node at a time migrates.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} migrations', 0));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    min_reader integer NOT NULL
);

-- name: migrations
-- Which migrations have been applied.
SELECT number, name, checksum, min_reader FROM {schema}.migrations ORDER BY number

-- name: migration_add
-- A migration was applied.
INSERT INTO {schema}.migrations (number, name, checksum, min_reader) VALUES ($1::integer, $2::text, $3::text, $4::integer)
