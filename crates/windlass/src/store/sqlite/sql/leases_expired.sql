SELECT id, worker FROM windlass_leases WHERE expires_at <= ?1 AND length <= ?2 ORDER BY id LIMIT ?3
