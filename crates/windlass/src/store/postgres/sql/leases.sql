-- name: renew
-- Extends leases that have not been reaped, whatever the clock says.
UPDATE {schema}.lease_ends
SET expires_at = {now} + $3::bigint, length_ms = $3::bigint
WHERE id = ANY ($2::bigint[])
RETURNING id

-- name: renew_cancels
-- Running jobs under these leases whose cancel was requested, in the order they were claimed.
SELECT c.id
FROM unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place)
JOIN {schema}.leases l ON l.id = ANY (ARRAY[i.lease_id])
CROSS JOIN LATERAL unnest(l.cancels) AS c (id)
WHERE NOT EXISTS (
    SELECT FROM {schema}.attempts a
    WHERE a.job_id = c.id AND a.number = coalesce(l.attempts[array_position(l.job_ids, c.id)], 1))
ORDER BY i.place, array_position(l.job_ids, c.id)

-- name: held
-- The running jobs under leases, in the order they were claimed.
SELECT {live}
FROM unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place)
JOIN {schema}.running j ON j.lease_id = i.lease_id
ORDER BY i.place, j.place

-- name: reap_expired
-- Leases that have run out, except for the lengths that the reaper spares, locked. Also those that end later than any
-- lease granted now: the clock was set back since. The reaper watches these for the length of the lease.
SELECT l.id, l.worker, clock.now, e.length_ms, e.expires_at
FROM (SELECT {now} AS now) clock, {schema}.lease_ends e
JOIN {schema}.leases l ON l.id = e.id
WHERE (e.expires_at <= clock.now OR e.expires_at > clock.now + e.length_ms + $5::bigint)
  AND NOT EXISTS (
      SELECT FROM unnest($2::bigint[], $3::bigint[]) AS spared (above, below)
      WHERE e.length_ms > spared.above AND e.length_ms < spared.below)
ORDER BY e.expires_at > clock.now, e.id
LIMIT $4::bigint
FOR UPDATE OF e, l SKIP LOCKED

-- name: reap_worker
-- The leases of a worker known to be gone, locked.
SELECT l.id, l.worker, clock.now, e.length_ms, e.expires_at
FROM (SELECT {now} AS now) clock, {schema}.leases l
JOIN {schema}.lease_ends e ON e.id = l.id
WHERE l.worker = $2::text
ORDER BY l.id
LIMIT $3::bigint
FOR UPDATE OF l, e SKIP LOCKED

-- name: holders
-- Who runs these jobs, and until when.
SELECT j.id, j.claimed_at, l.worker, e.expires_at
FROM {schema}.running j JOIN {schema}.leases l ON l.id = j.lease_id JOIN {schema}.lease_ends e ON e.id = l.id
WHERE j.id = ANY ($1::bigint[])
