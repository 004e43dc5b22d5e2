-- workers: those seen at or after a moment.
SELECT worker, host, version, queues, concurrency, running, started_at, seen_at
FROM {schema}.workers
WHERE seen_at >= $1::bigint
ORDER BY worker
