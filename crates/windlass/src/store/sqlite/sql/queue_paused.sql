SELECT paused FROM windlass_queues WHERE id = ?1
