SELECT jobs FROM windlass_leases WHERE id = ?1
