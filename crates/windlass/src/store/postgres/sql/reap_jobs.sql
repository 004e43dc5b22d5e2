-- reap_jobs: the jobs still running under these leases, locked in id order.
SELECT {live}
FROM {schema}.jobs j
WHERE j.id = ANY ($1::bigint[]) AND j.lease_id = ANY ($2::bigint[]) AND j.state = 'running'
ORDER BY j.id
FOR UPDATE OF j
