-- Operations: cancel, replay, discard, amend.

-- name: standing
-- The columns of a job that a verdict depends on.
SELECT queue_id, kind, state, priority, due_at, start_by, first_attempt_at IS NOT NULL AS has_started, 0 AS is_discarded
FROM windlass_live WHERE id = ?1
UNION ALL
SELECT queue_id, kind, state, priority, due_at, start_by, first_attempt_at IS NOT NULL, discarded_at IS NOT NULL
FROM windlass_archive WHERE id = ?1

-- name: request_cancel
UPDATE windlass_jobs SET cancel_requested = 1 WHERE id = ?1

-- name: run_now
UPDATE windlass_jobs SET due_at = ?2 WHERE id = ?1

-- name: replay
-- An archived job waits again, with the allowance ?2 to ?6.
INSERT INTO windlass_jobs (id, queue_id, priority, at_most_once, state, due_at, attempt, claimed_at, first_attempt_at,
    failures, crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout_ms,
    idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload)
SELECT id, queue_id, priority, at_most_once, 'queued', ?2, attempt, claimed_at, NULL, ?3, ?4, replays + 1, ?5, 0,
    created_at, policy_id, kind, ?6, timeout_ms, idempotency_key, schedule_id, parent_id,
    traceparent, error_class, error, http, webhook, payload
FROM windlass_archive
WHERE id = ?1

-- name: discard
UPDATE windlass_archive SET discarded_at = ?2, discard_reason = ?3 WHERE id = ?1 AND discarded_at IS NULL

-- name: amend
UPDATE windlass_jobs SET priority = ?2, due_at = ?3 WHERE id = ?1

-- name: waiting_enter
-- A job waits as its row says.
INSERT INTO windlass_waiting (lane, due_at, id) SELECT lane, due_at, id FROM windlass_jobs WHERE id = ?1

-- name: waiting_leave
-- A job stops waiting, or is about to wait in another place than its row says.
DELETE FROM windlass_waiting WHERE (lane, due_at, id) = (SELECT lane, due_at, id FROM windlass_jobs WHERE id = ?1)
