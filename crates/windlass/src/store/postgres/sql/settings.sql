-- settings: all of them.
SELECT s.scope, s.tenant, s.name, s.value FROM {schema}.settings s ORDER BY s.scope, s.tenant, s.name
