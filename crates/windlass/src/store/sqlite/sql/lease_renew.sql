UPDATE windlass_leases SET expires_at = ?2, length = ?3 WHERE id = ?1
