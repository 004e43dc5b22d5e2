-- queue_add: a queue's row, unless it is there.
INSERT INTO {schema}.queues (tenant, name, executor, created_at)
VALUES ($2::text, $3::text, $4::text, {now})
ON CONFLICT (tenant, name, executor) DO NOTHING
