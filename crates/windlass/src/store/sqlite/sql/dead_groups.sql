-- dead_groups: dead letters by fingerprint and tenant, the largest group first.
SELECT a.fingerprint, q.tenant, count(*), min(a.finished_at), max(a.finished_at), max(a.id)
FROM windlass_archive a INDEXED BY windlass_archive_failed
JOIN windlass_queues q ON q.id = a.queue_id
WHERE a.state = 'failed' AND a.discarded_at IS NULL
    AND (?1 IS NULL OR q.tenant = ?1)
    AND (?2 IS NULL OR q.name = ?2)
    AND (?3 IS NULL OR q.executor = ?3)
    AND (?4 IS NULL OR a.state IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR a.kind = ?5)
    AND (?6 IS NULL OR a.error_class = ?6)
    AND (?7 IS NULL OR a.finished_at >= ?7)
    AND (?8 IS NULL OR a.fingerprint = ?8)
    AND (?9 IS NULL OR a.schedule_id = ?9)
    AND (?10 IS NULL OR a.parent_id = ?10)
GROUP BY a.fingerprint, q.tenant
ORDER BY count(*) DESC, a.fingerprint
LIMIT ?11
