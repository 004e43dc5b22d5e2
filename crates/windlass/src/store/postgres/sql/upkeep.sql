-- name: expired
-- Waiting jobs whose latest start has passed before their first attempt, locked. Read along the index of latest starts,
-- up to now: by id, the planner would read all jobs.
WITH clock AS MATERIALIZED (SELECT {now} AS now)
SELECT {late}, clock.now
FROM clock
CROSS JOIN LATERAL (
    SELECT {live}
    FROM {schema}.jobs j
    WHERE j.start_by <= clock.now AND j.state <> 'running' AND j.first_attempt_at IS NULL
    ORDER BY j.start_by
    LIMIT $2::bigint
    FOR UPDATE OF j SKIP LOCKED
) late

-- name: prune_archive
-- A batch of archived jobs past their retention, with their attempts.
WITH old AS (
    SELECT a.class, a.finished_at, a.id
    FROM unnest($3::bigint[], $4::text[]) AS i (queue_id, state)
    JOIN {schema}.archive a ON a.queue_id = i.queue_id AND a.state = i.state
    WHERE a.class = $1::text AND a.finished_at <= $2::bigint
    LIMIT $5::bigint
    FOR UPDATE OF a SKIP LOCKED
),
ledger AS (
    DELETE FROM {schema}.archive_attempts x USING old o
    WHERE x.job_id = o.id AND x.class = o.class AND x.job_finished_at = o.finished_at
),
gone AS (
    DELETE FROM {schema}.archive a USING old o
    WHERE a.id = o.id AND a.class = o.class AND a.finished_at = o.finished_at
    RETURNING a.id
)
SELECT count(*) AS pruned FROM gone

-- name: prune_keys
-- Keys whose window has passed, or whose job is no longer live.
DELETE FROM {schema}.keys k
WHERE (k.tenant, k.key) IN (
    SELECT o.tenant, o.key
    FROM {schema}.keys o
    WHERE o.expires_at <= {now} OR (o.expires_at IS NULL AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = o.job_id))
    LIMIT $2::bigint
    FOR UPDATE SKIP LOCKED
)
RETURNING job_id

-- name: prune_workers
-- Workers not seen for a long time.
DELETE FROM {schema}.workers WHERE seen_at < $1::bigint
RETURNING worker

-- name: partitions
-- The archive's partitions by name, with how many rows each is thought to hold.
SELECT c.relname::text AS name, c.reltuples::bigint AS jobs
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = $1::text AND p.relname IN ('archive_done', 'archive_failed', 'archive_attempts_done', 'archive_attempts_failed')
ORDER BY 1

-- name: partition_lock
-- One node at a time changes the archive's partitions.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} partitions', 0))

-- name: partition_count
-- How many archived jobs go with a partition.
SELECT count(*) AS jobs FROM {schema}.archive a WHERE a.class = $1::text AND a.finished_at >= $2::bigint AND a.finished_at < $3::bigint

-- name: partition_make
-- A new partition, created separately and then attached, which blocks nobody.
CREATE TABLE IF NOT EXISTS {schema}.{name} (LIKE {schema}.{parent} INCLUDING ALL);
ALTER TABLE {schema}.{parent} ATTACH PARTITION {schema}.{name} FOR VALUES FROM ({from}) TO ({to})

-- name: partition_drop
-- A partition that is past every retention. Not CONCURRENTLY, which cannot run in a transaction and whose wait cannot
-- be bounded through a pooler: the lock is tried for a short time, and again at the next prune.
SET LOCAL lock_timeout = 500;
ALTER TABLE {schema}.{parent} DETACH PARTITION {schema}.{name};
DROP TABLE {schema}.{name}
