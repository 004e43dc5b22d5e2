WHERE id = ?1 AND lease_id = ?2 AND state = 'running'
