-- key_put: from now on these keys stand for these jobs.
INSERT INTO {schema}.keys AS k (tenant, key, job_id, kind, payload, expires_at)
SELECT i.tenant, i.key, i.job_id, i.kind, i.payload, i.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])
     AS i (tenant, key, job_id, kind, payload, expires_at)
ON CONFLICT (tenant, key) DO UPDATE
SET job_id = excluded.job_id, kind = excluded.kind, payload = excluded.payload, expires_at = excluded.expires_at
