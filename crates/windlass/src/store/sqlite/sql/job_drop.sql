-- job_drop: a running job that ends and is not kept, if the attempt still holds.
DELETE FROM windlass_jobs
WHERE id = ?1 AND attempt = ?2 AND lease_id = ?3 AND state = 'running' AND cancel_requested <= ?4
