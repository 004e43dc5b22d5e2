INDEXED BY windlass_jobs_waiting
WHERE queue_id = ?1 AND once = ?2 AND (crashes > 0) = ?3 AND priority = ?4 AND due_at <= ?5 AND state <> 'running'
    AND (start_by IS NULL OR start_by > ?5 OR first_attempt_at IS NOT NULL)
ORDER BY due_at, id
LIMIT ?6
