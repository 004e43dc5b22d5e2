-- commit_wait: a running job is live again; its attempt was found to hold. One row by its number, so that SQLite need not be ready to
-- undo half of it.
UPDATE windlass_live_jobs
SET state = iif(?2, 'retrying', 'queued'), due_at = ?3, attempt = ?4, claimed_at = ?5, first_attempt_at = coalesce(first_attempt_at, ?5), failures = ?6,
    crashes = ?7, previous_delay = coalesce(?8, previous_delay), error_class = iif(?9 IS NULL, error_class, ?9),
    error = iif(?9 IS NULL, error, ?10)
WHERE id = ?1
