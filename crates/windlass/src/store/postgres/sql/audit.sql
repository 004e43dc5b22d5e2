-- audit: what a person did.
INSERT INTO {schema}.audits (at, by, action, count, detail) VALUES ($1::bigint, $2::text, $3::text, $4::bigint, $5::text)
