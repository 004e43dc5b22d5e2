-- setting_remove: remove one.
DELETE FROM {schema}.settings WHERE scope = $1::text AND tenant = $2::text AND name = $3::text
RETURNING scope
