-- depth_waiting: from the claim index alone.
SELECT lane / 20, count(*) FILTER (WHERE due_at <= ?1), count(*) FILTER (WHERE due_at > ?1), min(due_at) FILTER (WHERE due_at <= ?1)
FROM windlass_jobs INDEXED BY windlass_jobs_waiting
WHERE state <> 'running'
GROUP BY lane / 20
