-- next_due: the first moment after ?2 at which a waiting job of queue ?1 falls due.
WITH level (priority, once) AS (VALUES (2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1), (-1, 0), (-1, 1), (-2, 0), (-2, 1))
SELECT min(due_at) FROM (
    SELECT (SELECT due_at FROM windlass_jobs INDEXED BY windlass_jobs_waiting
        WHERE queue_id = ?1 AND once = level.once AND priority = level.priority AND due_at > ?2
            AND state <> 'running' AND crashes = 0
        ORDER BY due_at LIMIT 1) AS due_at
    FROM level
    UNION ALL
    SELECT (SELECT due_at FROM windlass_jobs INDEXED BY windlass_jobs_suspect
        WHERE queue_id = ?1 AND once = level.once AND priority = level.priority AND due_at > ?2
            AND state <> 'running' AND crashes > 0
        ORDER BY due_at LIMIT 1)
    FROM level)
