-- renew: extend leases that have not been reaped, whatever the clock says.
UPDATE {schema}.leases
SET expires_at = {now} + $4::bigint, length_ms = $4::bigint
WHERE id = ANY ($2::bigint[]) AND worker = $3::text
RETURNING id
