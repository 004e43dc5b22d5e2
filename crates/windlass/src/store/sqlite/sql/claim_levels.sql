-- claim_levels: which priorities of a queue have due jobs: once or not, suspect or not. Twenty index probes, however
-- many jobs wait for later.
WITH
    priorities (priority) AS (VALUES (2), (1), (0), (-1), (-2)),
    kinds (once, suspect) AS (VALUES (0, 0), (1, 0), (0, 1), (1, 1))
SELECT priority, once, suspect FROM priorities CROSS JOIN kinds
WHERE EXISTS (
    SELECT 1 FROM windlass_jobs j INDEXED BY windlass_jobs_waiting
    WHERE j.queue_id = ?1 AND j.once = kinds.once AND (j.crashes > 0) = kinds.suspect
        AND j.priority = priorities.priority AND j.due_at <= ?2 AND j.state <> 'running')
