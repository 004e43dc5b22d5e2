SELECT id, worker, length FROM windlass_leases WHERE expires_at <= ?1 ORDER BY id
