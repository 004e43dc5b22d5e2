-- name: queues
-- Every queue.
SELECT {queue} FROM {schema}.queues q ORDER BY q.id

-- name: queue_find
-- One queue by its name.
SELECT {queue}
FROM {schema}.queues q
WHERE q.tenant = $1::text AND q.name = $2::text AND q.executor = $3::text

-- name: queue_add
-- Adds a queue, unless it exists.
INSERT INTO {schema}.queues (tenant, name, executor, created_at)
VALUES ($2::text, $3::text, $4::text, {now})
ON CONFLICT (tenant, name, executor) DO NOTHING

-- name: queue_pause
-- Every queue of this name in the tenant.
UPDATE {schema}.queues
SET paused = $4::boolean, paused_at = CASE WHEN $4::boolean THEN coalesce(paused_at, {now}) END
WHERE tenant = $2::text AND name = $3::text
RETURNING id

-- name: depths
-- How full each queue is. Nothing is counted that may be large: how many jobs are live, run or are dead letters is the
-- queue's balance plus the deltas since; jobs for later are counted along the claim index, up to $3 of each priority.
-- Summed and not joined, because there may be thousands of queues.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
sums AS MATERIALIZED (
    SELECT p.queue_id, sum(p.live)::bigint AS live, sum(p.running)::bigint AS running, sum(p.dead)::bigint AS dead
    FROM (
        SELECT id AS queue_id, true AS is_asked, 0 AS live, 0 AS running, 0 AS dead
        FROM {schema}.queues
        WHERE $2::text IS NULL OR tenant = $2::text
        UNION ALL
        SELECT queue_id, false, live, running, dead FROM {schema}.balances
        UNION ALL
        SELECT queue_id, false, enqueued + replayed - succeeded - failed - cancelled, claimed - attempts, failed - undead
        FROM {schema}.tally_deltas
    ) p
    GROUP BY p.queue_id
    HAVING bool_or(p.is_asked)
)
SELECT s.queue_id, clock.now, s.live, s.running, s.dead, coalesce(w.later, 0) AS later, coalesce(w.is_many, false) AS is_many,
       w.oldest_due
FROM clock CROSS JOIN sums s
LEFT JOIN LATERAL (
    SELECT sum(later.jobs)::bigint AS later, bool_or(later.jobs >= $3::bigint) AS is_many, min(oldest.due_at) AS oldest_due
    FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs
        FROM (SELECT FROM {schema}.waiting w
              WHERE w.queue_id = s.queue_id AND w.priority = level.priority AND w.due_at > clock.now AND w.gate_id IS NULL
              LIMIT $3::bigint) w
    ) later
    LEFT JOIN LATERAL (
        SELECT w.due_at
        FROM {schema}.waiting w
        WHERE w.queue_id = s.queue_id AND w.priority = level.priority AND w.due_at <= clock.now AND w.gate_id IS NULL
        ORDER BY w.due_at, w.id
        LIMIT 1
    ) oldest ON true
) w ON s.live <> 0
ORDER BY s.queue_id

-- name: depth_due
-- Waiting jobs of these queues that are due at a moment: along the claim index, up to $3 of each priority, and up to $3
-- parked ones, which are due.
SELECT q.id AS queue_id, sum(due.jobs)::bigint AS jobs, bool_or(due.jobs >= $3::bigint) AS is_many
FROM unnest($2::bigint[]) AS q (id)
CROSS JOIN LATERAL (
    SELECT here.jobs
    FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs
        FROM (SELECT FROM {schema}.waiting w
              WHERE w.queue_id = q.id AND w.priority = level.priority AND w.due_at <= $1::bigint AND w.gate_id IS NULL
              LIMIT $3::bigint) w
    ) here
    UNION ALL
    SELECT count(*) FROM (SELECT FROM {schema}.waiting w WHERE w.queue_id = q.id AND w.gate_id IS NOT NULL LIMIT $3::bigint) w
) due
GROUP BY q.id

-- name: depth_later
-- Jobs of these queues that are due after a moment: along the claim index, up to $3 of each priority.
SELECT q.id AS queue_id, sum(later.jobs)::bigint AS jobs, bool_or(later.jobs >= $3::bigint) AS is_many
FROM unnest($2::bigint[]) AS q (id)
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (SELECT FROM {schema}.waiting w
          WHERE w.queue_id = q.id AND w.priority = level.priority AND w.due_at > $1::bigint AND w.gate_id IS NULL
          LIMIT $3::bigint) w
) later
GROUP BY q.id

-- name: policies
-- Policies by number.
SELECT p.id, p.line FROM {schema}.policies p WHERE p.id = ANY ($1::bigint[])

-- name: policy_find
-- A policy's number.
SELECT p.id
FROM {schema}.policies p
WHERE hashtextextended(p.line, 0) = hashtextextended($1::text, 0) AND p.line = $1::text
ORDER BY p.id
LIMIT 1

-- name: policy_add
-- Adds a policy, unless it exists.
INSERT INTO {schema}.policies (line)
SELECT $1::text
WHERE NOT EXISTS (
    SELECT FROM {schema}.policies p
    WHERE hashtextextended(p.line, 0) = hashtextextended($1::text, 0) AND p.line = $1::text)

-- name: settings
-- Every setting of every source.
SELECT s.scope, s.tenant, s.name, s.node, s.value, s.origin, s.set_at FROM {schema}.settings s

-- name: setting_put
INSERT INTO {schema}.settings (scope, tenant, name, node, value, origin, set_at, seen_at)
VALUES ($2::text, $3::text, $4::text, $5::text, $6::text, $7::text, {now}, {now})
ON CONFLICT (scope, tenant, name, node) DO UPDATE
SET value = excluded.value, origin = excluded.origin, set_at = excluded.set_at, seen_at = excluded.seen_at
RETURNING scope

-- name: setting_remove
DELETE FROM {schema}.settings WHERE scope = $1::text AND tenant = $2::text AND name = $3::text AND node = ''
RETURNING scope

-- name: settings_touch
-- A node reports that it is alive, or that it leaves ($3).
UPDATE {schema}.settings SET seen_at = CASE WHEN $3::boolean THEN 0 ELSE {now} END WHERE node = $2::text
RETURNING scope

-- name: settings_forget
-- The settings of one node, and of the nodes that have not been seen for a while.
DELETE FROM {schema}.settings WHERE node <> '' AND (node = $2::text OR seen_at < {now} - $3::bigint)
RETURNING scope
