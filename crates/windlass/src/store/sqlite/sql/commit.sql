-- Commit: running jobs end or wait again, with their attempts.

-- name: succeed_held
-- Those of the listed jobs that run, with their place in the list.
SELECT listed.key AS place, j.attempt + 1 AS attempt, r.lease_id, j.failures, j.schedule_id
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = r.id

-- name: succeed
-- Archives the listed jobs, which run and have succeeded, each with its last attempt in its row. ?3 and ?4 hold when
-- the attempts started and finished, twenty digits per listed job: a blob can be sliced anywhere, a JSON array must be
-- parsed.
INSERT INTO windlass_archive (id, queue_id, priority, at_most_once, state, due_at, attempt, claimed_at, first_attempt_at,
    failures, crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout_ms,
    idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload, finished_at,
    last_retry, last_started_at, last_finished_at, last_lease_id, last_worker)
SELECT j.id, j.queue_id, j.priority, j.at_most_once, 'succeeded', j.due_at, j.attempt + 1, r.claimed_at,
    coalesce(j.first_attempt_at, r.claimed_at), j.failures, 0, j.replays, j.previous_delay, j.cancel_requested,
    j.created_at, j.policy_id, j.kind, j.start_by, j.timeout_ms, j.idempotency_key, j.schedule_id, j.parent_id,
    j.traceparent, j.error_class, j.error, j.http, j.webhook, j.payload, ?2, j.failures,
    CAST(CAST(substr(?3, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER),
    CAST(CAST(substr(?4, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER), r.lease_id, ?5
FROM json_each(?1) listed
CROSS JOIN windlass_jobs j ON j.id = listed.value
CROSS JOIN windlass_running r ON r.id = j.id

-- name: jobs_delete
DELETE FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?1))

-- name: jobs_stop
DELETE FROM windlass_running WHERE id IN (SELECT value FROM json_each(?1))

-- name: finish_held
-- A running job that is to end, if the attempt still holds: what the archive copies, then what the last failure left.
SELECT j.id, j.queue_id, j.priority, j.at_most_once, j.due_at, j.attempt + 1 AS attempt, r.claimed_at,
    coalesce(j.first_attempt_at, r.claimed_at) AS first_attempt_at, j.replays, j.previous_delay, j.cancel_requested,
    j.created_at, j.policy_id, j.kind, j.start_by, j.timeout_ms, j.idempotency_key, j.schedule_id, j.parent_id,
    j.traceparent, j.http, j.webhook, j.payload, j.error_class, j.error
FROM windlass_running r
CROSS JOIN windlass_jobs j ON j.id = r.id
WHERE r.id = ?1 AND j.attempt + 1 = ?2 AND r.lease_id = ?3

-- name: finish
-- Values, not a SELECT from the jobs: for that, SQLite would write a journal for every statement.
INSERT INTO windlass_archive ({kept}, error_class, error, state, failures, crashes, finished_at, reason, fingerprint, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)

-- name: job_delete
DELETE FROM windlass_jobs WHERE id = ?1

-- name: job_stop
DELETE FROM windlass_running WHERE id = ?1

-- name: wait_held
-- Those of the listed jobs that run, with their place in the list.
SELECT listed.key AS place, j.attempt + 1 AS attempt, r.lease_id, r.claimed_at, j.cancel_requested, j.priority, j.at_most_once
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = r.id

-- name: wait
-- A running job waits again; its attempt was checked before. Updates one row by its id, so that SQLite needs no journal
-- for undoing half of the statement.
UPDATE windlass_jobs
SET state = ?2, due_at = ?3, attempt = ?4, claimed_at = ?5,
    first_attempt_at = coalesce(first_attempt_at, ?5), failures = ?6, crashes = ?7,
    previous_delay = coalesce(?8, previous_delay), error_class = iif(?9 IS NULL, error_class, ?9),
    error = iif(?9 IS NULL, error, ?10)
WHERE id = ?1

-- name: finish_waiting
-- Archives a waiting job that ends without an attempt.
INSERT INTO windlass_archive (id, queue_id, priority, at_most_once, state, due_at, attempt, claimed_at, first_attempt_at,
    failures, crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout_ms,
    idempotency_key, schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload, finished_at,
    reason, fingerprint)
SELECT id, queue_id, priority, at_most_once, ?2, due_at, attempt, claimed_at, first_attempt_at, failures, crashes,
    replays, previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout_ms, idempotency_key,
    schedule_id, parent_id, traceparent, error_class, error, http, webhook, payload, ?3, ?4, ?5
FROM windlass_jobs
WHERE id = ?1
