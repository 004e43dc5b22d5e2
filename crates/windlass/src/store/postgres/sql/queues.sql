-- queues: every queue.
SELECT q.id, q.tenant, q.name, q.executor, q.paused, q.created_at FROM {schema}.queues q ORDER BY q.id
