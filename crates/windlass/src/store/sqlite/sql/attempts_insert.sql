INSERT INTO windlass_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
