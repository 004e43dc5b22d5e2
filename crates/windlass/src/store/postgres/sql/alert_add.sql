-- alert_add: a new alert, unless another node made it.
INSERT INTO {schema}.alerts (rule, subject, status, incident, since, fired_at, resolved_at, detail)
VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::text)
ON CONFLICT (rule, subject) DO NOTHING
RETURNING rule
