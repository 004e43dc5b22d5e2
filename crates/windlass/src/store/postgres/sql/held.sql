-- held: the running jobs under leases, in the order they were claimed.
SELECT {live}
FROM unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place)
JOIN {schema}.leases l ON l.id = i.lease_id
JOIN {schema}.jobs j ON j.id = ANY (l.job_ids) AND j.lease_id = l.id AND j.state = 'running'
ORDER BY i.place, array_position(l.job_ids, j.id)
