-- depth_later: jobs of these queues that are due after a moment: along the claim index, up to $3 of each priority.
SELECT q.id, sum(later.jobs)::bigint, bool_or(later.jobs >= $3::bigint)
FROM unnest($2::bigint[]) AS q (id)
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (SELECT FROM {schema}.jobs j
          WHERE j.queue_id = q.id AND j.priority = level.priority AND j.due_at > $1::bigint LIMIT $3::bigint) j
) later
GROUP BY q.id
