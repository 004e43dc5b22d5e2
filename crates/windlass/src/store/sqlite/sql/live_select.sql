SELECT id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay, cancel_requested, created_at,
    policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook,
    payload, lease_id
FROM windlass_live
