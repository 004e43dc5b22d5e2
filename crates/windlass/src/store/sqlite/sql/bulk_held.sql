-- bulk_held: those of the listed jobs that are running, in the order listed.
SELECT j.id, j.attempt, j.lease_id, j.failures, j.schedule_id
FROM json_each(?1) listed
CROSS JOIN windlass_jobs j ON j.id = listed.value
WHERE j.state = 'running'
