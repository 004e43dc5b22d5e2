-- prune_live_keys: of the ?2 keys after ?1, those that stood for a job's life which is over.
DELETE FROM windlass_keys
WHERE id IN (SELECT id FROM windlass_keys WHERE id > ?1 ORDER BY id LIMIT ?2)
    AND expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM windlass_live_jobs j WHERE j.id = windlass_keys.job_id)
