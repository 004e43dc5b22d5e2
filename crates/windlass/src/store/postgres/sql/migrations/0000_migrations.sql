-- Where migrations are written down. The lock is the transaction's: one node at a time.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} migrations', 0));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    min_reader integer NOT NULL
);
