SELECT schedule_id FROM windlass_jobs WHERE id = ?1
