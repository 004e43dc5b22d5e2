-- key_find: the job a key stands for at ?3, if it stands for one.
SELECT k.job_id FROM windlass_keys k
WHERE k.tenant = ?1 AND k.key = ?2
    AND (k.expires_at > ?3 OR (k.expires_at IS NULL AND EXISTS (SELECT 1 FROM windlass_live_jobs j WHERE j.id = k.job_id)))
