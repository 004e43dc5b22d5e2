-- claim_late: whether any job should have started before now.
SELECT EXISTS (
    SELECT 1 FROM windlass_live_jobs INDEXED BY windlass_jobs_start_by
    WHERE start_by IS NOT NULL AND first_attempt_at IS NULL AND start_by <= ?1)
