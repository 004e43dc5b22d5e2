DELETE FROM windlass_live_jobs WHERE id IN (SELECT value FROM json_each(?1))
