INDEXED BY windlass_jobs_waiting
WHERE queue_id = ?1 AND once = ?2 AND priority = ?3 AND due_at <= ?4 AND state <> 'running' AND crashes = 0
    AND (start_by IS NULL OR start_by > ?4 OR first_attempt_at IS NOT NULL)
ORDER BY due_at, id
LIMIT ?5
