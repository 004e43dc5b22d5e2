-- depth_waiting: from the claim indexes alone.
SELECT queue_id, count(*) FILTER (WHERE due_at <= ?1), count(*) FILTER (WHERE due_at > ?1), min(due_at) FILTER (WHERE due_at <= ?1)
FROM (
    SELECT queue_id, due_at FROM windlass_jobs INDEXED BY windlass_jobs_waiting WHERE state <> 'running' AND crashes = 0
    UNION ALL
    SELECT queue_id, due_at FROM windlass_jobs INDEXED BY windlass_jobs_suspect WHERE state <> 'running' AND crashes > 0)
GROUP BY queue_id
