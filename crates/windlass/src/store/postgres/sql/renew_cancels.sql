-- renew_cancels: running jobs under these leases whose cancel was requested.
SELECT j.id
FROM {schema}.jobs j
WHERE j.cancel_requested AND j.lease_id = ANY ($1::bigint[])
ORDER BY j.id
