-- note: a migration was applied.
INSERT INTO {schema}.migrations (number, name, checksum, min_reader) VALUES ($1::integer, $2::text, $3::text, $4::integer)
