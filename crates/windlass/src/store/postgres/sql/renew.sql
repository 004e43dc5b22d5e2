-- renew: extend leases that have not been reaped, whatever the clock says.
UPDATE {schema}.leases
SET expires_at = {now} + $3::bigint, length_ms = $3::bigint
WHERE id = ANY ($2::bigint[])
RETURNING id
