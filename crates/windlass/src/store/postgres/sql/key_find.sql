-- key_find: the keys that stand for a job now.
SELECT k.tenant, k.key, k.job_id, k.kind, k.payload
FROM unnest($2::text[], $3::text[]) AS i (tenant, key)
JOIN {schema}.keys k ON k.tenant = i.tenant AND k.key = i.key
WHERE k.expires_at > {now}
   OR (k.expires_at IS NULL AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = k.job_id))
