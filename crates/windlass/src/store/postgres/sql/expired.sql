-- expired: waiting jobs whose latest start has passed before their first attempt, locked. Along the index of latest starts, up to
-- now: by id the planner would rather walk all jobs there are.
WITH clock AS MATERIALIZED (SELECT {now} AS now)
SELECT clock.now, {late}
FROM clock
CROSS JOIN LATERAL (
    SELECT {live}
    FROM {schema}.jobs j
    WHERE j.start_by <= clock.now AND j.state = 'queued' AND j.first_attempt_at IS NULL
    ORDER BY j.start_by
    LIMIT $2::bigint
    FOR UPDATE OF j SKIP LOCKED
) late
