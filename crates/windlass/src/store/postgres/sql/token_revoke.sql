-- token_revoke: it lets nobody in from now on.
UPDATE {schema}.tokens SET revoked_at = {now} WHERE id = $2::text AND revoked_at IS NULL
RETURNING id
