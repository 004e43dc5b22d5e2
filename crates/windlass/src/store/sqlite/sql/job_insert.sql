INSERT INTO windlass_live_jobs (id, queue_id, priority, once, state, due_at, attempt, failures, crashes, replays, previous_delay,
    cancel_requested, created_at, policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent,
    http, webhook, payload)
VALUES (?1, ?2, ?3, ?4, 'queued', ?5, 0, 0, 0, 0, 0, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
