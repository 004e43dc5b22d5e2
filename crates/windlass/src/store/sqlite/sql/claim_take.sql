UPDATE windlass_jobs
SET state = 'running', attempt = ?2, lease_id = ?3, claimed_at = ?4, first_attempt_at = ?5
WHERE id = ?1
