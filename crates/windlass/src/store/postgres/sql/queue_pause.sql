-- queue_pause: every queue of this name in the tenant.
UPDATE {schema}.queues SET paused = $3::boolean WHERE tenant = $1::text AND name = $2::text
RETURNING id
