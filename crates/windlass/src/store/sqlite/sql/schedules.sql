-- Schedules.

-- name: schedule_add
INSERT INTO windlass_schedules (id, tenant, cadence, zone, one_shot, overlap, missed, dead_letters, template, paused, next_at,
    created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11)

-- name: schedule
SELECT {schedule} FROM windlass_schedules WHERE id = ?1

-- name: schedules_newest
SELECT {schedule} FROM windlass_schedules WHERE (?1 IS NULL OR tenant = ?1) AND id < ?2 ORDER BY id DESC LIMIT ?3

-- name: schedules_oldest
SELECT {schedule} FROM windlass_schedules WHERE (?1 IS NULL OR tenant = ?1) AND id > ?2 ORDER BY id LIMIT ?3

-- name: schedule_change
UPDATE windlass_schedules
SET tenant = ?2, cadence = ?3, zone = ?4, one_shot = ?5, overlap = ?6, missed = ?7, dead_letters = ?8, template = ?9, paused = ?10,
    next_at = ?11
WHERE id = ?1

-- name: schedule_remove
DELETE FROM windlass_schedules WHERE id = ?1

-- name: schedules_due
SELECT {schedule} FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE paused = 0 AND next_at IS NOT NULL AND next_at <= ?1
ORDER BY next_at, id
LIMIT ?2

-- name: schedules_next
-- When the next schedule after ?1 fires.
SELECT min(next_at) FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE paused = 0 AND next_at IS NOT NULL AND next_at > ?1

-- name: schedule_fired
UPDATE windlass_schedules SET next_at = ?2, last_at = ?3, last_job = ?4 WHERE id = ?1

-- name: schedule_dead
-- The run ?2 has failed: it is the last that did.
UPDATE windlass_schedules SET last_dead = ?2 WHERE id = ?1

-- name: schedule_supersede
-- A dead letter whose place a later run has taken.
UPDATE windlass_outcomes SET discarded_at = ?2, discard_reason = ?3 WHERE id = ?1 AND state = 'failed' AND discarded_at IS NULL

-- name: one_shots_ending
-- One-shot schedules that are removed when their job has ended.
SELECT id FROM windlass_schedules INDEXED BY windlass_schedules_ending WHERE one_shot = 1 AND next_at IS NULL
