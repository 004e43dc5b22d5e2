-- held: the running jobs under a lease, in the order they were claimed.
SELECT {live}
FROM {schema}.leases l JOIN {schema}.jobs j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
WHERE l.id = $1::bigint
ORDER BY array_position(l.job_ids, j.id)
