INDEXED BY windlass_schedules_due
WHERE paused = 0 AND next_at IS NOT NULL AND next_at <= ?1 ORDER BY next_at, id LIMIT ?2
