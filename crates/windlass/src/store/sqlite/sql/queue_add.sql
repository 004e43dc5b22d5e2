INSERT INTO windlass_queues (tenant, name, executor, created_at) VALUES (?1, ?2, ?3, ?4)
