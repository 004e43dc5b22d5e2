-- archive_waiting: a waiting job that ends without an attempt.
INSERT INTO windlass_archive (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook,
    payload, finished_at, reason, fingerprint)
SELECT id, queue_id, priority, once, ?2, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook,
    payload, ?3, ?4, ?5
FROM windlass_live_jobs
WHERE id = ?1
