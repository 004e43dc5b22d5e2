-- What has been applied, by whom it can still be read, and what it was.
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    min_reader INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
