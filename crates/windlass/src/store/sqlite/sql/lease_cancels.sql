SELECT id FROM windlass_jobs WHERE cancel_requested = 1 AND lease_id = ?1 AND state = 'running' ORDER BY id
