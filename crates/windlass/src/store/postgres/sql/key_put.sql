-- key_put: from now on these keys stand for these jobs.
INSERT INTO {schema}.keys AS k (tenant, key, job_id, expires_at)
SELECT i.tenant, i.key, i.job_id, i.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i (tenant, key, job_id, expires_at)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
