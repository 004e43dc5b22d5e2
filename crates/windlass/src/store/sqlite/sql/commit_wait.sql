-- commit_wait: live again. No row changed: the attempt no longer holds, or a cancel was requested.
UPDATE windlass_jobs
SET state = ?4, due_at = ?5, failures = ?6, crashes = ?7, previous_delay = coalesce(?8, previous_delay), lease_id = NULL,
    error_class = iif(?9 IS NULL, error_class, ?9), error = iif(?9 IS NULL, error, ?10)
WHERE id = ?1 AND attempt = ?2 AND lease_id = ?3 AND state = 'running' AND cancel_requested = 0
