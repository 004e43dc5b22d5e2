-- key_find: the keys that stand for a job now, with its kind and payload if it is kept still.
SELECT k.tenant, k.key, k.job_id, coalesce(j.kind, a.kind), coalesce(j.payload, a.payload)
FROM unnest($2::text[], $3::text[]) AS i (tenant, key)
JOIN {schema}.keys k ON k.tenant = i.tenant AND k.key = i.key
LEFT JOIN {schema}.jobs j ON j.id = k.job_id
LEFT JOIN {schema}.archive a ON a.id = k.job_id
WHERE k.expires_at > {now} OR (k.expires_at IS NULL AND j.id IS NOT NULL)
