INSERT INTO windlass_settings (scope, tenant, name, value) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (scope, tenant, name) DO UPDATE SET value = excluded.value
