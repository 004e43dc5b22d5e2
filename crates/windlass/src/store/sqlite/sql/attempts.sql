-- Attempts that have ended: added, read, restored and deleted.

-- name: attempt_add
INSERT INTO windlass_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note,
    worker, next_run_at, delay_ms, why, trace, replay)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)

-- name: attempts
SELECT {attempt} FROM windlass_ended_attempts WHERE job_id = ?1 ORDER BY number DESC LIMIT ?2

-- name: schedule_attempts
SELECT {attempt}, job_id FROM windlass_ended_attempts
WHERE job_id IN (
    SELECT id FROM windlass_live WHERE schedule_id = ?1
        AND (?2 IS NULL OR lane / 20 IN (SELECT id FROM windlass_queues WHERE tenant = ?2))
    UNION ALL
    SELECT id FROM windlass_outcomes WHERE schedule_id = ?1
        AND (?2 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE tenant = ?2)))
ORDER BY finished_at DESC, job_id DESC, number DESC
LIMIT ?3

-- name: recorded_outcome
-- Whether this same outcome ended the attempt before.
SELECT 1 FROM windlass_ended_attempts WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3 AND status = ?4

-- name: attempts_restore
-- The last attempt of an archived job, if it is kept in the job's row, becomes a row again.
INSERT INTO windlass_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, worker, why, replay)
SELECT id, attempt, last_lease_id, last_retry, 'SUCCESS', last_started_at, last_finished_at, last_worker, 'succeeded', replays
FROM windlass_outcomes
WHERE id = ?1 AND last_started_at IS NOT NULL

-- name: attempts_delete
DELETE FROM windlass_attempts WHERE job_id = ?1
