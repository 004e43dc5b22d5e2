-- claim_due: waiting jobs of a lane that are due, first things first. In the order of `live_select`; none has a lease.
SELECT j.id, j.queue_id, j.priority, j.once, j.state, j.due_at, j.attempt, j.claimed_at, j.first_attempt_at, j.failures,
    j.crashes, j.replays, j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by,
    j.timeout, j.idempotency_key, j.schedule_id, j.parent_id, j.traceparent, j.error_class, j.error, j.http, j.webhook,
    j.payload, NULL
FROM windlass_waiting w
CROSS JOIN windlass_live_jobs j ON j.id = w.id
WHERE w.lane = ?1 AND w.due_at <= ?2 AND (j.start_by IS NULL OR j.start_by > ?2 OR j.first_attempt_at IS NOT NULL)
ORDER BY w.due_at, w.id
LIMIT ?3
