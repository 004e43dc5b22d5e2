INDEXED BY windlass_archive_failed
WHERE state = 'failed' AND discarded_at IS NULL
    AND (?1 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE tenant = ?1))
    AND (?2 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE name = ?2))
    AND (?3 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE executor = ?3))
    AND (?4 IS NULL OR state IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR kind = ?5)
    AND (?6 IS NULL OR error_class = ?6)
    AND (?7 IS NULL OR finished_at >= ?7)
    AND id < ?8
    AND (?9 IS NULL OR schedule_id = ?9)
    AND (?10 IS NULL OR parent_id = ?10)
    AND (?12 IS NULL OR fingerprint = ?12)
ORDER BY id DESC
LIMIT ?11
