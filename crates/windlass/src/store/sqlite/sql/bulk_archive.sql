-- bulk_archive: the listed jobs, which run and have succeeded, each with its last attempt in its row. When the attempts started and
-- finished: ?3 and ?4, twenty digits for each of the listed, because a blob can be cut up in no time and JSON cannot.
INSERT INTO windlass_archive (id, queue_id, priority, once, state, due_at, attempt, claimed_at, first_attempt_at, failures,
    crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout, idempotency_key,
    schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload, finished_at, last_retry, last_started_at,
    last_finished_at, last_lease_id, last_worker)
SELECT j.id, j.queue_id, j.priority, j.once, 'succeeded', j.due_at, j.attempt + 1, r.claimed_at, coalesce(j.first_attempt_at, r.claimed_at), j.failures,
    0, j.replays, j.previous_delay, j.cancel_requested, j.created_at, j.policy_id, j.kind, j.start_by, j.timeout, j.idempotency_key,
    j.schedule_id, j.parent_id, j.traceparent, j.error_class, j.error, j.http, j.webhook, j.payload, ?2, j.failures,
    CAST(CAST(substr(?3, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER),
    CAST(CAST(substr(?4, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER), r.lease_id, ?5
FROM json_each(?1) listed
CROSS JOIN windlass_live_jobs j ON j.id = listed.value
CROSS JOIN windlass_running r ON r.id = j.id
