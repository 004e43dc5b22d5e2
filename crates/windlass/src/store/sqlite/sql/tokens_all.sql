SELECT id, name, hash, scopes, tenant, created_at, revoked_at FROM windlass_tokens ORDER BY created_at, rowid
