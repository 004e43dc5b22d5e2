-- bulk_archive: the listed jobs, which run and have succeeded.
INSERT INTO windlass_archive (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures,
    crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout, idempotency_key,
    schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload, finished_at)
SELECT j.id, j.queue_id, j.priority, j.once, 'succeeded', j.due_at, j.attempt, j.claimed_at, j.first_attempt_at, j.failures,
    0, j.replays, j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by, j.timeout, j.idempotency_key,
    j.schedule_id, j.parent_id, j.traceparent, j.error_class, j.error, j.http, j.webhook, j.payload, ?2
FROM json_each(?1) listed
CROSS JOIN windlass_jobs j ON j.id = listed.value
