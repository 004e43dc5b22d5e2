-- lease_cancels: running jobs under a lease whose cancel was requested. A lease lists its jobs: no index is needed.
SELECT j.id
FROM windlass_leases l
CROSS JOIN json_each('[' || l.jobs || ']') covered
CROSS JOIN windlass_running r ON r.id = covered.value AND r.lease_id = l.id
CROSS JOIN windlass_live_jobs j ON j.id = r.id
WHERE l.id = ?1 AND j.cancel_requested = 1
ORDER BY covered.key
