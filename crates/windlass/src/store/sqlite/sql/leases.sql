-- Leases: renew, what they hold, and which have run out.

-- name: renew
UPDATE windlass_leases SET expires_at = ?2, length_ms = ?3 WHERE id = ?1

-- name: renew_cancels
-- Running jobs under a lease whose cancel was requested. A lease lists its jobs, so no index is needed.
SELECT j.id
FROM windlass_leases l
CROSS JOIN json_each('[' || l.job_ids || ']') covered
CROSS JOIN windlass_running r ON r.id = covered.value AND r.lease_id = l.id
CROSS JOIN windlass_jobs j ON j.id = r.id
WHERE l.id = ?1 AND j.cancel_requested = 1
ORDER BY covered.key

-- name: lease_jobs
SELECT job_ids FROM windlass_leases WHERE id = ?1

-- name: held
-- Those of the listed jobs that run, in the order of the list, with their place in it.
SELECT j.id, j.queue_id, j.priority, j.at_most_once, 'running' AS state, j.due_at, j.attempt + 1 AS attempt,
    r.claimed_at, coalesce(j.first_attempt_at, r.claimed_at) AS first_attempt_at, j.failures, j.crashes, j.replays,
    j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by, j.timeout_ms,
    j.idempotency_key, j.schedule_id, j.parent_id, j.traceparent, j.error_class, j.error, j.http, j.webhook,
    j.payload, r.lease_id, listed.key AS place
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = r.id

-- name: lease_end
DELETE FROM windlass_leases WHERE id = ?1

-- name: reap_expired
SELECT {lease} FROM windlass_leases WHERE expires_at <= ?1 ORDER BY id

-- name: reap_worker
SELECT {lease} FROM windlass_leases WHERE worker = ?1 ORDER BY id LIMIT ?2

-- name: leases_stray
SELECT count(*) FROM windlass_leases WHERE expires_at < ?1

-- name: holders
-- Who runs the listed jobs, and until when.
SELECT {holder}
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_leases l ON l.id = r.lease_id
