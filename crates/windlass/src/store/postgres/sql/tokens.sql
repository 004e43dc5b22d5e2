-- tokens: all of them.
SELECT id, name, hash, scopes, tenant, created_at, revoked_at FROM {schema}.tokens ORDER BY created_at, id
