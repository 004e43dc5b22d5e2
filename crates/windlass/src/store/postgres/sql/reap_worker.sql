-- reap_worker: the leases of a worker known to be gone, locked.
SELECT l.id, l.worker, l.job_ids, clock.now, l.length_ms
FROM (SELECT {now} AS now) clock, {schema}.leases l
WHERE l.worker = $2::text
ORDER BY l.id
LIMIT $3::bigint
FOR UPDATE OF l SKIP LOCKED
