-- name: begin
-- A transaction with limits and plan settings of its own, so that it works behind a pooler. Plans are kept and use
-- indexes: a plan made while a table was empty must not scan it when it is full.
BEGIN;
SET LOCAL statement_timeout = 30000;
SET LOCAL lock_timeout = 10000;
SET LOCAL idle_in_transaction_session_timeout = 60000;
SET LOCAL plan_cache_mode = force_generic_plan;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off

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
       (SELECT count(*) FROM {schema}.leases l WHERE l.expires_at < {now} - $2::bigint) AS stray_leases

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
