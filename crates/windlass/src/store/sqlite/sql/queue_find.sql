SELECT id FROM windlass_queues WHERE tenant = ?1 AND name = ?2 AND executor = ?3
