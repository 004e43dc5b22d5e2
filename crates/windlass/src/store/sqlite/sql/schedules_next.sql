SELECT min(next_at) FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE paused = 0 AND next_at IS NOT NULL AND next_at > ?1
