-- Schema: which migrations were applied, and whether the file can be written.

-- name: migrations_table
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    min_reader INTEGER NOT NULL CHECK (min_reader >= 1),
    applied_at INTEGER NOT NULL
) STRICT

-- name: migrations_exist
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'windlass_migrations'

-- name: migrations
SELECT {migration} FROM windlass_migrations ORDER BY number

-- name: migration_add
INSERT INTO windlass_migrations ({migration}) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: pulse
-- A write, to check that the file is writable.
INSERT INTO windlass_pulse (one, beat_at) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET beat_at = excluded.beat_at
