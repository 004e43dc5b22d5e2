-- prune_keys: keys whose window has passed, or whose job is no longer live.
DELETE FROM {schema}.keys k
WHERE (k.tenant, k.key) IN (
    SELECT o.tenant, o.key
    FROM {schema}.keys o
    WHERE o.expires_at <= {now} OR (o.expires_at IS NULL AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = o.job_id))
    LIMIT $2::bigint
    FOR UPDATE SKIP LOCKED
)
RETURNING job_id
