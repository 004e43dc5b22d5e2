INDEXED BY windlass_jobs_waiting
WHERE lane = ?1 AND due_at <= ?2 AND state <> 'running'
    AND (start_by IS NULL OR start_by > ?2 OR first_attempt_at IS NOT NULL)
ORDER BY due_at, id
LIMIT ?3
