-- renew_cancels: running jobs under these leases whose cancel was requested.
SELECT j.id
FROM {schema}.jobs j
JOIN unnest($1::bigint[]) WITH ORDINALITY AS i (lease_id, place) ON i.lease_id = j.lease_id
JOIN {schema}.leases l ON l.id = i.lease_id
WHERE j.cancel_requested
ORDER BY i.place, array_position(l.job_ids, j.id)
