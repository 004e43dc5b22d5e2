INSERT INTO windlass_live_jobs (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook,
    payload)
SELECT id, queue_id, priority, once, 'queued', ?2, attempt, claimed_at, NULL, 0, 0, replays + 1, 0, 0, created_at,
    policy_id, kind, iif(start_by > ?3, start_by, NULL), timeout, idempotency_key, schedule_id, parent_id, traceparent,
    error_class, error, http, webhook, payload
FROM windlass_archive
WHERE id = ?1
