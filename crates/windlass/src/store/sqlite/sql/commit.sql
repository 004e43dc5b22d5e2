-- Commit: running jobs end or wait again, with their attempts. What the job is stays where it is.

-- name: succeed_held
-- Those of the listed jobs that run, with their place in the list.
SELECT listed.key AS place, l.attempt + 1 AS attempt, l.lease_id, l.failures, l.schedule_id
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value
WHERE l.lease_id IS NOT NULL

-- name: succeed
-- The outcomes of the listed jobs, which run and have succeeded, each with its last attempt in its row. ?3 and ?4 hold
-- when the attempts started and finished, twenty digits per listed job: a blob can be sliced anywhere, a JSON array
-- must be parsed.
INSERT INTO windlass_outcomes (id, queue_id, state, finished_at, due_at, attempt, claimed_at, first_attempt_at, failures,
    crashes, replays, previous_delay, cancel_requested, start_by, schedule_id, parent_id, error_class, error, last_retry,
    last_started_at, last_finished_at, last_lease_id, last_worker)
SELECT l.id, l.lane / 20, 'succeeded', ?2, l.due_at, l.attempt + 1, l.claimed_at,
    coalesce(l.first_attempt_at, l.claimed_at), l.failures, 0, l.replays, l.previous_delay, l.cancel_requested, l.start_by,
    l.schedule_id, l.parent_id, l.error_class, l.error, l.failures,
    CAST(CAST(substr(?3, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER),
    CAST(CAST(substr(?4, listed.key * 20 + 1, 20) AS TEXT) AS INTEGER), l.lease_id, ?5
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value

-- name: lives_delete
DELETE FROM windlass_live WHERE id IN (SELECT value FROM json_each(?1))

-- name: finish_held
-- A running job that is to end, if the attempt still holds: what its outcome copies, then what the last failure left.
SELECT id, lane / 20 AS queue_id, due_at, attempt + 1 AS attempt, claimed_at,
    coalesce(first_attempt_at, claimed_at) AS first_attempt_at, replays, previous_delay, cancel_requested, start_by,
    schedule_id, parent_id, error_class, error
FROM windlass_live
WHERE id = ?1 AND attempt + 1 = ?2 AND lease_id = ?3

-- name: finish
-- Values, not a SELECT from the live jobs: for that, SQLite would write a journal for every statement.
INSERT INTO windlass_outcomes ({kept}, error_class, error, state, failures, crashes, finished_at, reason, fingerprint, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)

-- name: live_delete
DELETE FROM windlass_live WHERE id = ?1

-- name: job_delete
DELETE FROM windlass_jobs WHERE id = ?1

-- name: wait_held
-- Those of the listed jobs that run, with their place in the list.
SELECT listed.key AS place, l.attempt + 1 AS attempt, l.lease_id, l.cancel_requested, l.lane
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value
WHERE l.lease_id IS NOT NULL

-- name: wait
-- A running job waits again; its attempt was checked before. Updates one row by its id, so that SQLite needs no journal
-- for undoing half of the statement.
UPDATE windlass_live
SET lease_id = NULL, first_attempt_at = coalesce(first_attempt_at, claimed_at), is_retrying = ?2, lane = ?3, due_at = ?4,
    attempt = ?5, failures = ?6, crashes = ?7, previous_delay = coalesce(?8, previous_delay),
    error_class = iif(?9 IS NULL, error_class, ?9), error = iif(?9 IS NULL, error, ?10)
WHERE id = ?1

-- name: finish_waiting
-- The outcome of a waiting job that ends without an attempt.
INSERT INTO windlass_outcomes (id, queue_id, state, finished_at, due_at, attempt, claimed_at, first_attempt_at, failures,
    crashes, replays, previous_delay, cancel_requested, start_by, schedule_id, parent_id, error_class, error, reason,
    fingerprint)
SELECT id, lane / 20, ?2, ?3, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays, previous_delay,
    cancel_requested, start_by, schedule_id, parent_id, error_class, error, ?4, ?5
FROM windlass_live
WHERE id = ?1
