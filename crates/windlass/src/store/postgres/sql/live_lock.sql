-- live_lock: live jobs, locked in id order.
SELECT {live}
FROM {schema}.jobs j
WHERE j.id = ANY ($1::bigint[])
ORDER BY j.id
FOR UPDATE OF j
