-- Leases: renew, what they hold, and which have run out.

-- name: renew
UPDATE windlass_leases SET expires_at = ?2, length_ms = ?3, ends_at_boot = ?4 WHERE id = ?1

-- name: renew_cancels
-- Running jobs under a lease whose cancel was requested. A lease lists its jobs, so no index is needed.
SELECT l.id
FROM windlass_leases g
CROSS JOIN json_each('[' || g.job_ids || ']') covered
CROSS JOIN windlass_live l ON l.id = covered.value AND l.lease_id = g.id
WHERE g.id = ?1 AND l.cancel_requested = 1
ORDER BY covered.key

-- name: lease_jobs
SELECT job_ids FROM windlass_leases WHERE id = ?1

-- name: held
-- Those of the listed jobs that run, in the order of the list, with their place in it.
SELECT l.id, j.queue_id, j.priority, j.at_most_once, 'running' AS state, l.due_at, l.attempt + 1 AS attempt,
    l.claimed_at, coalesce(l.first_attempt_at, l.claimed_at) AS first_attempt_at, l.failures, l.crashes, l.replays,
    l.previous_delay, l.cancel_requested, j.created_at, j.policy_id, j.kind, l.start_by, j.timeout_ms,
    j.idempotency_key, l.schedule_id, l.parent_id, j.traceparent, j.limit_key, l.error_class, l.error, j.http, j.webhook,
    j.payload, l.lease_id, listed.key AS place
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = l.id
WHERE l.lease_id IS NOT NULL

-- name: lease_end
DELETE FROM windlass_leases WHERE id = ?1

-- name: reap_expired
-- By the time since the machine started: setting the clock ends no lease.
SELECT {lease} FROM windlass_leases WHERE ends_at_boot <= ?1 ORDER BY id

-- name: reap_worker
SELECT {lease} FROM windlass_leases WHERE worker = ?1 ORDER BY id LIMIT ?2

-- name: leases_stray
SELECT count(*) FROM windlass_leases WHERE ends_at_boot < ?1

-- name: holders
-- Who runs the listed jobs, and until when.
SELECT {holder}
FROM json_each(?1) listed
CROSS JOIN windlass_live j ON j.id = listed.value
CROSS JOIN windlass_leases l ON l.id = j.lease_id
