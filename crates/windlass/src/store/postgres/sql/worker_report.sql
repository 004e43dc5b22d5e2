-- worker_report: what a worker says of itself.
INSERT INTO {schema}.workers (worker, host, version, queues, concurrency, running, started_at, seen_at)
VALUES ($1::text, $2::text, $3::text, $4::text[], $5::bigint[], $6::bigint, $7::bigint, $8::bigint)
ON CONFLICT (worker) DO UPDATE SET host = excluded.host, version = excluded.version, queues = excluded.queues,
    concurrency = excluded.concurrency, running = excluded.running, started_at = excluded.started_at, seen_at = excluded.seen_at
RETURNING worker
