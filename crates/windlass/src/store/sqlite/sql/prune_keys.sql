DELETE FROM windlass_keys WHERE id IN (
    SELECT id FROM windlass_keys INDEXED BY windlass_keys_expiry WHERE expires_at IS NOT NULL AND expires_at <= ?1 LIMIT ?2)
