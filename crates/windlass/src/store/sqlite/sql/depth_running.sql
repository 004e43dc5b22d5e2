SELECT j.queue_id, count(*)
FROM windlass_running r
CROSS JOIN windlass_live_jobs j ON j.id = r.id
GROUP BY j.queue_id
