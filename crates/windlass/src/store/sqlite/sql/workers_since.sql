SELECT worker, host, version, queues, running, started_at, seen_at FROM windlass_workers WHERE seen_at >= ?1 ORDER BY worker
