-- next_due: when the first waiting job of these queues falls due after now, by one index probe per queue and priority.
SELECT min(d.due_at)
FROM unnest($2::bigint[]) AS t (queue_id)
JOIN {schema}.queues q ON q.id = t.queue_id AND NOT q.paused
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT j.due_at
    FROM {schema}.jobs j
    WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at > $1::bigint AND j.state <> 'running'
    ORDER BY j.due_at, j.id
    LIMIT 1
) d
