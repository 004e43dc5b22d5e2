-- next_due: the first moment after ?2 at which a waiting job of queue ?1 falls due.
WITH
    priorities (priority) AS (VALUES (2), (1), (0), (-1), (-2)),
    kinds (once, suspect) AS (VALUES (0, 0), (1, 0), (0, 1), (1, 1))
SELECT min((
    SELECT j.due_at FROM windlass_jobs j INDEXED BY windlass_jobs_waiting
    WHERE j.queue_id = ?1 AND j.once = kinds.once AND (j.crashes > 0) = kinds.suspect
        AND j.priority = priorities.priority AND j.due_at > ?2 AND j.state <> 'running'
    ORDER BY j.due_at LIMIT 1))
FROM priorities CROSS JOIN kinds
