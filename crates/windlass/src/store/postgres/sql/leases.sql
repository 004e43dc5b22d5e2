-- name: renew
-- Extends leases that have not been reaped, whatever the clock says.
UPDATE {schema}.leases
SET expires_at = {now} + $3::bigint, length_ms = $3::bigint
WHERE id = ANY ($2::bigint[])
RETURNING id

-- name: renew_cancels
-- Running jobs under these leases whose cancel was requested.
SELECT j.id
FROM {schema}.jobs j
JOIN unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place) ON i.lease_id = j.lease_id
JOIN {schema}.leases l ON l.id = i.lease_id
WHERE j.cancel_requested
ORDER BY i.place, array_position(l.job_ids, j.id)

-- name: held
-- The running jobs under leases, in the order they were claimed.
SELECT {live}
FROM unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place)
JOIN {schema}.leases l ON l.id = i.lease_id
JOIN {schema}.jobs j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
ORDER BY i.place, array_position(l.job_ids, j.id)

-- name: reap_expired
-- Leases that have run out, except for the lengths that the reaper spares, locked.
SELECT l.id, l.worker, l.job_ids, clock.now, l.length_ms
FROM (SELECT {now} AS now) clock, {schema}.leases l
WHERE l.expires_at <= clock.now
  AND NOT EXISTS (
      SELECT FROM unnest($2::bigint[], $3::bigint[]) AS spared (above, below)
      WHERE l.length_ms > spared.above AND l.length_ms < spared.below)
ORDER BY l.id
LIMIT $4::bigint
FOR UPDATE OF l SKIP LOCKED

-- name: reap_worker
-- The leases of a worker known to be gone, locked.
SELECT l.id, l.worker, l.job_ids, clock.now, l.length_ms
FROM (SELECT {now} AS now) clock, {schema}.leases l
WHERE l.worker = $2::text
ORDER BY l.id
LIMIT $3::bigint
FOR UPDATE OF l SKIP LOCKED

-- name: reap_jobs
-- The jobs still running under these leases, locked in id order.
SELECT {live}
FROM {schema}.jobs j
WHERE j.id = ANY ($1::bigint[]) AND j.lease_id = ANY ($2::bigint[]) AND j.state = 'running'
ORDER BY j.id
FOR UPDATE OF j

-- name: holders
-- Who runs these jobs, and until when.
SELECT j.id, j.claimed_at, l.worker, l.expires_at
FROM {schema}.jobs j JOIN {schema}.leases l ON l.id = j.lease_id
WHERE j.id = ANY ($1::bigint[])
