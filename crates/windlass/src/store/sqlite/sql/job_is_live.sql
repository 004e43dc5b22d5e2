SELECT 1 FROM windlass_live_jobs WHERE id = ?1
