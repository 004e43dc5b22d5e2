DELETE FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?1))
