-- setting_put: set one.
INSERT INTO {schema}.settings (scope, tenant, name, value) VALUES ($1::text, $2::text, $3::text, $4::text)
ON CONFLICT (scope, tenant, name) DO UPDATE SET value = excluded.value
RETURNING scope
