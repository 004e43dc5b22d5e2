-- name: attempts
-- A job's latest attempts, newest first.
SELECT {attempt}
FROM {schema}.ended_attempts a
WHERE a.job_id = $1::bigint
ORDER BY a.number DESC
LIMIT $2::bigint

-- name: schedule_attempts
-- The latest attempts of all runs of a schedule, newest first.
SELECT {attempt}
FROM {schema}.jobs j JOIN {schema}.queues q ON q.id = j.queue_id JOIN {schema}.ended_attempts a ON a.job_id = j.id
WHERE j.schedule_id = $1::bigint AND ($3::text IS NULL OR q.tenant = $3::text)
ORDER BY a.finished_at DESC, a.job_id DESC, a.number DESC
LIMIT $2::bigint
