-- next_due: when the first waiting job of these queues falls due, by one index probe per queue and priority.
SELECT min(d.due_at)
FROM unnest($2::bigint[]) WITH ORDINALITY AS t (queue_id, turn)
JOIN {schema}.queues q ON q.id = t.queue_id AND NOT q.paused
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
CROSS JOIN LATERAL (
    SELECT j.due_at
    FROM {schema}.jobs j
    WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.state <> 'running'
      AND (j.due_at, j.id) >= (($3::bigint[])[(t.turn - 1) * 5 + level.place], ($4::bigint[])[(t.turn - 1) * 5 + level.place])
      AND (j.start_by IS NULL OR j.start_by >= $1::bigint OR j.first_attempt_at IS NOT NULL)
    ORDER BY j.due_at, j.id
    LIMIT 1
) d
