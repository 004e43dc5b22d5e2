-- Queues and their depths, policies, settings.

-- name: queues
SELECT {queue} FROM windlass_queues ORDER BY id

-- name: queue
SELECT {queue} FROM windlass_queues WHERE id = ?1

-- name: queue_find
SELECT id FROM windlass_queues WHERE tenant = ?1 AND name = ?2 AND executor = ?3

-- name: queue_add
INSERT INTO windlass_queues (tenant, name, executor, created_at) VALUES (?1, ?2, ?3, ?4)

-- name: queue_pause
UPDATE windlass_queues SET paused = ?3, paused_at = iif(?3, coalesce(paused_at, ?4), NULL) WHERE tenant = ?1 AND name = ?2

-- name: lanes_waiting
SELECT lane, waiting FROM windlass_lanes WHERE waiting > 0

-- name: lanes_add
INSERT INTO windlass_lanes (lane, waiting) VALUES (?1, ?2) ON CONFLICT (lane) DO UPDATE SET waiting = waiting + excluded.waiting

-- name: lane_due
-- How many jobs of lane ?1 are due, counted up to ?3, and since when the first is.
SELECT count(*) AS count, min(due_at) AS first
FROM (SELECT due_at FROM windlass_waiting WHERE lane = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT ?3)

-- name: lane_later
-- How many jobs of lane ?1 are due later, counted up to ?3.
SELECT count(*) FROM (SELECT 1 FROM windlass_waiting WHERE lane = ?1 AND due_at > ?2 LIMIT ?3)

-- name: depth_running
-- Every running job is listed by its lease; a lease may also list jobs that have ended.
SELECT l.lane / 20 AS queue_id, count(*) AS count
FROM windlass_leases g
CROSS JOIN json_each('[' || g.job_ids || ']') covered
CROSS JOIN windlass_live l ON l.id = covered.value AND l.lease_id = g.id
GROUP BY l.lane / 20

-- name: depth_dead
SELECT queue_id, count(*) AS count FROM windlass_outcomes INDEXED BY windlass_outcomes_failed
WHERE state = 'failed' AND discarded_at IS NULL
GROUP BY queue_id

-- name: policy
SELECT line FROM windlass_policies WHERE id = ?1

-- name: policy_find
SELECT id FROM windlass_policies WHERE line = ?1

-- name: policy_add
INSERT INTO windlass_policies (line) VALUES (?1)

-- name: settings
SELECT {setting} FROM windlass_settings

-- name: setting
-- One setting, of every source.
SELECT {setting} FROM windlass_settings WHERE scope = ?1 AND tenant = ?2 AND name = ?3

-- name: setting_put
INSERT INTO windlass_settings (scope, tenant, name, node, value, origin, set_at, seen_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
ON CONFLICT (scope, tenant, name, node) DO UPDATE
SET value = excluded.value, origin = excluded.origin, set_at = excluded.set_at, seen_at = excluded.seen_at

-- name: setting_remove
DELETE FROM windlass_settings WHERE scope = ?1 AND tenant = ?2 AND name = ?3 AND node = ''

-- name: settings_touch
-- A node reports that it is alive, or that it leaves (0).
UPDATE windlass_settings SET seen_at = ?2 WHERE node = ?1

-- name: settings_forget
-- The settings of one node, and of the nodes that have not been seen for a while.
DELETE FROM windlass_settings WHERE node <> '' AND (node = ?1 OR seen_at < ?2)
