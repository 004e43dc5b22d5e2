UPDATE windlass_live_jobs SET due_at = min(due_at, ?2) WHERE id = ?1
