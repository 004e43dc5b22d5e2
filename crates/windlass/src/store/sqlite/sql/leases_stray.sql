SELECT count(*) FROM windlass_leases WHERE expires_at < ?1
