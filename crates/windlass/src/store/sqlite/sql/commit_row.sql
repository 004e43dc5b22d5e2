-- commit_row: a running job that is to end, if the attempt still holds: what the archive copies, then what the last failure left.
SELECT j.id, j.queue_id, j.priority, j.once, j.due_at, j.attempt + 1, r.claimed_at, coalesce(j.first_attempt_at, r.claimed_at), j.replays,
    j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by, j.timeout, j.idempotency_key, j.schedule_id,
    j.parent_id, j.traceparent, j.http, j.webhook, j.payload, j.error_class, j.error
FROM windlass_running r
CROSS JOIN windlass_live_jobs j ON j.id = r.id
WHERE r.id = ?1 AND j.attempt + 1 = ?2 AND r.lease_id = ?3
