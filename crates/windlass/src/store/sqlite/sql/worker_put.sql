INSERT INTO windlass_workers (worker, host, version, queues, running, started_at, seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (worker) DO UPDATE SET host = excluded.host, version = excluded.version, queues = excluded.queues,
    running = excluded.running, started_at = excluded.started_at, seen_at = excluded.seen_at
