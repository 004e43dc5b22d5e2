UPDATE windlass_live_jobs SET priority = coalesce(?2, priority), due_at = coalesce(?3, due_at) WHERE id = ?1
