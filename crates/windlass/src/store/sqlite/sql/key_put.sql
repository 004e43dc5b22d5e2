INSERT INTO windlass_keys (tenant, key, job_id, expires_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
