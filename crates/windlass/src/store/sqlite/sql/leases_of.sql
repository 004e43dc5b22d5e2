SELECT id, worker FROM windlass_leases WHERE worker = ?1 ORDER BY id LIMIT ?2
