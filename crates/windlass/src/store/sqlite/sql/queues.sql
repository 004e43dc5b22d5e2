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
UPDATE windlass_queues SET paused = ?3 WHERE tenant = ?1 AND name = ?2

-- name: queue_paused
SELECT paused FROM windlass_queues WHERE id = ?1

-- name: depth_waiting
-- How many jobs wait in each queue, due and later, and since when the oldest is due. Counted lane by lane, which is
-- several times faster than grouping: a million waiting jobs take a tenth of a second.
WITH lanes (queue_id, lane) AS (
    SELECT q.id, q.id * 20 + place.value
    FROM windlass_queues q
    CROSS JOIN json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]') place
), counts AS (
    SELECT queue_id,
        (SELECT count(*) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at <= ?1) AS due,
        (SELECT count(*) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at > ?1) AS later,
        (SELECT min(w.due_at) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at <= ?1) AS oldest
    FROM lanes)
SELECT queue_id, sum(due) AS due, sum(later) AS later, min(oldest) AS oldest_due
FROM counts
GROUP BY queue_id

-- name: depth_running
SELECT j.queue_id, count(*) AS count
FROM windlass_running r
CROSS JOIN windlass_jobs j ON j.id = r.id
GROUP BY j.queue_id

-- name: depth_dead
SELECT queue_id, count(*) AS count FROM windlass_archive INDEXED BY windlass_archive_failed
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
