-- archive_attempted: a running job that ends, if the attempt still holds (and no cancel was requested that its ending, unlike
-- a success, does not honour).
INSERT INTO windlass_archive (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook,
    payload, finished_at, reason, fingerprint, result)
SELECT id, queue_id, priority, once, ?4, due_at, attempt, claimed_at, first_attempt_at, ?5, ?6, replays, previous_delay,
    cancel_requested, created_at, policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent,
    iif(?7 IS NULL, error_class, ?7), iif(?7 IS NULL, error, ?8), http, webhook, payload, ?9, ?10, ?11, ?12
FROM windlass_jobs
WHERE id = ?1 AND attempt = ?2 AND lease_id = ?3 AND state = 'running' AND cancel_requested <= ?13
