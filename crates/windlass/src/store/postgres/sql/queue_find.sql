-- queue_find: one queue by its name.
SELECT q.id, q.tenant, q.name, q.executor, q.paused, q.created_at
FROM {schema}.queues q
WHERE q.tenant = $1::text AND q.name = $2::text AND q.executor = $3::text
