-- depth_running: what runs is what leases cover; no index on running jobs is needed.
SELECT j.queue_id, count(*)
FROM windlass_leases l
CROSS JOIN json_each('[' || l.jobs || ']') covered
CROSS JOIN windlass_jobs j ON j.id = covered.value AND j.lease_id = l.id AND j.state = 'running'
GROUP BY j.queue_id
