-- attempts_restore: the last attempt of an archived job that is kept in its row becomes a row again.
INSERT INTO windlass_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, worker, why)
SELECT id, attempt, last_lease_id, last_retry, 'SUCCESS', last_started_at, last_finished_at, last_worker, 'succeeded'
FROM windlass_archive WHERE id = ?1 AND last_started_at IS NOT NULL
