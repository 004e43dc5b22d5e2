SELECT scope, tenant, name, value FROM windlass_settings ORDER BY scope, tenant, name
