WHERE id IN (
        SELECT j.id FROM windlass_live_jobs j INDEXED BY windlass_jobs_start_by
        WHERE j.start_by IS NOT NULL AND j.first_attempt_at IS NULL AND j.start_by <= ?1)
    AND state = 'queued'
ORDER BY id
LIMIT ?2
