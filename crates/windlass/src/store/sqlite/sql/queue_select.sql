SELECT id, tenant, name, executor, paused, created_at FROM windlass_queues
