UPDATE windlass_queues SET paused = ?3 WHERE tenant = ?1 AND name = ?2
