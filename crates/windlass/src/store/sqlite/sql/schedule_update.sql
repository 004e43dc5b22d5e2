UPDATE windlass_schedules
SET tenant = ?2, cadence = ?3, zone = ?4, recurrence = ?5, overlap = ?6, missed = ?7, template = ?8, paused = ?9, next_at = ?10
WHERE id = ?1
