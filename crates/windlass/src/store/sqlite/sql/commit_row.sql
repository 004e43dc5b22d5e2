-- commit_row: a running job that is to end, if the attempt still holds: what the archive copies, then what the last failure left.
SELECT id, queue_id, priority, once, due_at, attempt, claimed_at, first_attempt_at, replays, previous_delay, cancel_requested,
    created_at, policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, http, webhook, payload,
    error_class, error
FROM windlass_jobs
WHERE id = ?1 AND attempt = ?2 AND lease_id = ?3 AND state = 'running'
