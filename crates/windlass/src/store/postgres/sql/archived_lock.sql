-- archived_lock: archived jobs, locked in id order.
SELECT {archived}
FROM {schema}.archive j
WHERE j.id = ANY ($1::bigint[])
ORDER BY j.id
FOR UPDATE OF j
