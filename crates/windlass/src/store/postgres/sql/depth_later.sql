-- depth_later: jobs of these queues that are due after a moment, all of them.
SELECT q.id, sum(later.jobs)::bigint
FROM unnest($2::bigint[]) AS q (id)
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM {schema}.jobs j
    WHERE j.queue_id = q.id AND j.priority = level.priority AND j.due_at > $1::bigint
) later
GROUP BY q.id
