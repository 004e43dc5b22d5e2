DELETE FROM windlass_schedules WHERE id = ?1
