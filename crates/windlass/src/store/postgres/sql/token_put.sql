-- token_put: a token, new or changed.
INSERT INTO {schema}.tokens (id, name, hash, scopes, tenant, created_at, revoked_at)
VALUES ($1::text, $2::text, $3::bytea, $4::text[], $5::text, $6::bigint, $7::bigint)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, scopes = excluded.scopes, tenant = excluded.tenant,
    created_at = excluded.created_at, revoked_at = excluded.revoked_at
RETURNING id
