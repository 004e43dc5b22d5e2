DELETE FROM windlass_leases WHERE id = ?1
