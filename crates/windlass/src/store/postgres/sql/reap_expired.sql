-- reap_expired: leases that have run out and are no longer than the reaper's contact, locked.
SELECT l.id, l.worker, l.job_ids, clock.now
FROM (SELECT {now} AS now) clock, {schema}.leases l
WHERE l.expires_at <= clock.now AND l.length_ms <= $2::bigint
ORDER BY l.id
LIMIT $3::bigint
FOR UPDATE OF l SKIP LOCKED
