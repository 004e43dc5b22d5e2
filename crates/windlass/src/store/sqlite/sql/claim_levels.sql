-- claim_levels: which priorities of a queue have due jobs: once or not, suspect or not. Twenty index probes, however
-- many jobs wait for later.
WITH level (priority, once) AS (VALUES (2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1), (-1, 0), (-1, 1), (-2, 0), (-2, 1))
SELECT priority, once, 0 FROM level WHERE EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting
    WHERE queue_id = ?1 AND once = level.once AND priority = level.priority AND due_at <= ?2
        AND state <> 'running' AND crashes = 0)
UNION ALL
SELECT priority, once, 1 FROM level WHERE EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_suspect
    WHERE queue_id = ?1 AND once = level.once AND priority = level.priority AND due_at <= ?2
        AND state <> 'running' AND crashes > 0)
