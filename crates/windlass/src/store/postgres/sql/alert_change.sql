-- alert_change: only if the alert is still as it was read.
UPDATE {schema}.alerts
SET status = $3::text, incident = $4::bigint, since = $5::bigint, fired_at = $6::bigint, resolved_at = $7::bigint, detail = $8::text
WHERE rule = $1::text AND subject = $2::text AND status = $9::text AND incident = $10::bigint
RETURNING rule
