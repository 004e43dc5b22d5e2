-- expired: waiting jobs whose latest start has passed before their first attempt, locked.
SELECT clock.now, {live}
FROM (SELECT {now} AS now) clock, {schema}.jobs j
WHERE j.start_by <= clock.now AND j.state = 'queued' AND j.first_attempt_at IS NULL
ORDER BY j.id
LIMIT $2::bigint
FOR UPDATE OF j SKIP LOCKED
