-- reap_expired: leases that have run out, but for the lengths that the reaper spares, locked.
SELECT l.id, l.worker, l.job_ids, clock.now, l.length_ms
FROM (SELECT {now} AS now) clock, {schema}.leases l
WHERE l.expires_at <= clock.now
  AND NOT EXISTS (
      SELECT FROM unnest($2::bigint[], $3::bigint[]) AS spared (above, below)
      WHERE l.length_ms > spared.above AND l.length_ms < spared.below)
ORDER BY l.id
LIMIT $4::bigint
FOR UPDATE OF l SKIP LOCKED
