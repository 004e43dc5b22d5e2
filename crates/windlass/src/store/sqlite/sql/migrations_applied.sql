SELECT number, name, checksum, min_reader FROM windlass_migrations ORDER BY number
