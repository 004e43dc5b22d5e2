INSERT INTO windlass_running (id, lease_id, claimed_at) VALUES (?1, ?2, ?3)
