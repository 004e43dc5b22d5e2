INSERT INTO windlass_migrations (number, name, checksum, min_reader, applied_at) VALUES (?1, ?2, ?3, ?4, ?5)
