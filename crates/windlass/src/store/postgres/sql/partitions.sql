-- partitions: the archive's partitions by name, with how many rows each is thought to hold.
SELECT c.relname::text, c.reltuples::bigint
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = $1::text AND p.relname IN ('archive_done', 'archive_failed', 'archive_attempts_done', 'archive_attempts_failed')
ORDER BY 1
