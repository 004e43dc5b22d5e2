-- Transfer: jobs with their history, read for a copy and stored from one.

-- name: key_held
-- How long a key refers to a job: no row if it does not.
SELECT expires_at FROM windlass_keys WHERE tenant = ?1 AND key = ?2 AND job_id = ?3 AND (expires_at IS NULL OR expires_at > ?4)

-- name: import_mark
-- How far an import has come.
SELECT value FROM windlass_settings WHERE scope = 'server' AND tenant = '*' AND name = ?1 AND node = ''

-- name: is_empty
SELECT NOT EXISTS (SELECT 1 FROM windlass_jobs) AND NOT EXISTS (SELECT 1 FROM windlass_schedules)

-- name: installation_put
UPDATE windlass_installation SET id = ?1 WHERE one = 1

-- name: ids_raise
-- Ids up to here are taken.
UPDATE windlass_sequence SET last = max(last, ?1) WHERE one = 1

-- name: job_put
-- Changes nothing if there is a job with this id.
INSERT INTO windlass_jobs (id, queue_id, priority, at_most_once, created_at, policy_id, kind, timeout_ms, idempotency_key,
    traceparent, limit_key, http, webhook, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (id) DO NOTHING

-- name: waiter_put
INSERT INTO windlass_live (id, lane, due_at, start_by, schedule_id, parent_id, claimed_at, first_attempt_at, attempt,
    is_retrying, failures, crashes, replays, previous_delay, error_class, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)

-- name: outcome_put
INSERT INTO windlass_outcomes (id, queue_id, state, finished_at, due_at, attempt, claimed_at, first_attempt_at, failures,
    crashes, replays, previous_delay, cancel_requested, start_by, schedule_id, parent_id, error_class, error, reason,
    fingerprint, discarded_at, discard_reason, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)

-- name: key_keep
-- A key that refers to another job stays with it.
INSERT INTO windlass_keys (tenant, key, job_id, expires_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (tenant, key) DO NOTHING

-- name: schedule_put
-- Changes nothing if there is a schedule with this id.
INSERT INTO windlass_schedules ({schedule})
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (id) DO NOTHING
