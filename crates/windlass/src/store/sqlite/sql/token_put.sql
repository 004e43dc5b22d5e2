INSERT INTO windlass_tokens (id, name, hash, scopes, tenant, created_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, scopes = excluded.scopes, tenant = excluded.tenant,
    created_at = excluded.created_at, revoked_at = excluded.revoked_at
