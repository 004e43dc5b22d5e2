SELECT id FROM windlass_archive INDEXED BY windlass_archive_age
WHERE queue_id = ?1 AND state = ?2 AND finished_at <= ?3
ORDER BY finished_at
LIMIT ?4
