DELETE FROM windlass_live_jobs WHERE id = ?1
