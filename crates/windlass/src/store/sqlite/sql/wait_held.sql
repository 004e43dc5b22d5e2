-- wait_held: those of the listed jobs that are running, by their place in the list.
SELECT listed.key, j.attempt + 1, r.lease_id, r.claimed_at, j.cancel_requested, j.priority, j.once
FROM json_each(?1) listed
CROSS JOIN windlass_running r ON r.id = listed.value
CROSS JOIN windlass_live_jobs j ON j.id = r.id
