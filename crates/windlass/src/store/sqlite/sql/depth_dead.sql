SELECT queue_id, count(*) FROM windlass_archive INDEXED BY windlass_archive_failed
WHERE state = 'failed' AND discarded_at IS NULL
GROUP BY queue_id
