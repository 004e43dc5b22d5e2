-- attempts: a job's latest attempts, newest first.
SELECT a.job_id, {attempt}
FROM (
    SELECT a.job_id, {attempt} FROM {schema}.attempts a WHERE a.job_id = $1::bigint
    UNION ALL
    SELECT a.job_id, {attempt} FROM {schema}.ended_attempts a WHERE a.job_id = $1::bigint
) a
ORDER BY a.number DESC
LIMIT $2::bigint
