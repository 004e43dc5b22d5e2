-- amend: change a waiting job.
UPDATE {schema}.jobs
SET priority = coalesce($2::smallint, priority), due_at = coalesce($3::bigint, due_at)
WHERE id = $1::bigint AND state <> 'running'
RETURNING id
