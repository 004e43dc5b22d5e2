DELETE FROM windlass_settings WHERE scope = ?1 AND tenant = ?2 AND name = ?3
