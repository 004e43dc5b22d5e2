DELETE FROM windlass_jobs WHERE id = ?1
