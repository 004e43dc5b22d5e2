SELECT number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why FROM windlass_ended_attempts WHERE job_id = ?1
ORDER BY number DESC
LIMIT ?2
