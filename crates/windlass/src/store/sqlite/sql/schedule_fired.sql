UPDATE windlass_schedules SET next_at = ?2, last_at = ?3, last_job = ?4 WHERE id = ?1
