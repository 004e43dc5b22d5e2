-- attempts_archive: the attempts of the listed jobs.
INSERT INTO windlass_archive_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why)
SELECT a.job_id, a.number, a.lease_id, a.retry, a.status, a.started_at, a.finished_at, a.error_class, a.error, a.note, a.worker, a.next_run_at, a.delay, a.why
FROM json_each(?1) listed
CROSS JOIN windlass_attempts a ON a.job_id = listed.value
