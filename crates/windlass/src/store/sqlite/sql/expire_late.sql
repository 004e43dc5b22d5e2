INDEXED BY windlass_jobs_start_by
WHERE start_by IS NOT NULL AND first_attempt_at IS NULL AND start_by <= ?1 AND state = 'queued'
ORDER BY id
LIMIT ?2
