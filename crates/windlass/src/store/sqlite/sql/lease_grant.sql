INSERT INTO windlass_leases (id, worker, expires_at, length, jobs) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET jobs = jobs || ',' || excluded.jobs
