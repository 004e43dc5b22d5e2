-- bulk_take: the listed jobs, all under one lease.
UPDATE windlass_jobs
SET state = 'running', attempt = attempt + 1, lease_id = ?2, claimed_at = ?3, first_attempt_at = coalesce(first_attempt_at, ?3)
WHERE id IN (SELECT value FROM json_each(?1))
