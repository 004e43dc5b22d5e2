-- migrations: what has been applied.
SELECT number, name, checksum, min_reader FROM {schema}.migrations ORDER BY number
