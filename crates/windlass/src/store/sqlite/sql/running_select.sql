-- running_select: those of the listed jobs that are running, in the order of the list; each with its place in it. Otherwise as `live_select`.
SELECT j.id, j.queue_id, j.priority, j.once, 'running', j.due_at, j.attempt + 1, r.claimed_at, coalesce(j.first_attempt_at, r.claimed_at),
    j.failures, j.crashes, j.replays, j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by,
    j.timeout, j.idempotency_key, j.schedule_id, j.parent_id, j.traceparent, j.error_class, j.error, j.http, j.webhook,
    j.payload, r.lease_id, listed.key
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_live_jobs j ON j.id = r.id
