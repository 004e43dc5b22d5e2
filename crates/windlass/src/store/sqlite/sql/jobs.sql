-- Reads of jobs. The listings have one statement per index that serves them: the plan must not depend on what is bound.

-- part: filter
(?1 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE tenant = ?1))
    AND (?2 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE name = ?2))
    AND (?3 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE executor = ?3))
    AND (?4 IS NULL OR state IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR kind = ?5)
    AND (?6 IS NULL OR error_class = ?6)

-- name: job_live
SELECT {job} FROM windlass_live_jobs WHERE id = ?1

-- name: job_archived
SELECT {job}, {finished} FROM windlass_archive WHERE id = ?1

-- name: keyed
-- The live job under a key, and the lease it runs under.
SELECT k.job_id, l.lease_id
FROM windlass_keys k
CROSS JOIN windlass_live l ON l.id = k.job_id
WHERE k.tenant = ?1 AND k.key = ?2

-- name: is_live
SELECT 1 FROM windlass_live WHERE id = ?1

-- name: live_newest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id < ?8 AND (?9 IS NULL OR schedule_id = ?9) AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id DESC
LIMIT ?11

-- name: live_oldest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id > ?8 AND (?9 IS NULL OR schedule_id = ?9) AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id ASC
LIMIT ?11

-- name: live_schedule_newest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id < ?8 AND schedule_id = ?9 AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id DESC
LIMIT ?11

-- name: live_schedule_oldest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id > ?8 AND schedule_id = ?9 AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id ASC
LIMIT ?11

-- name: live_parent_newest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id < ?8 AND (?9 IS NULL OR schedule_id = ?9) AND parent_id = ?10
ORDER BY id DESC
LIMIT ?11

-- name: live_parent_oldest
SELECT {job} FROM windlass_live_jobs
WHERE {filter}
    AND (?7 IS NULL OR created_at >= ?7) AND id > ?8 AND (?9 IS NULL OR schedule_id = ?9) AND parent_id = ?10
ORDER BY id ASC
LIMIT ?11

-- name: archive_newest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id < ?8 AND (?9 IS NULL OR schedule_id = ?9) AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id DESC
LIMIT ?11

-- name: archive_oldest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id > ?8 AND (?9 IS NULL OR schedule_id = ?9) AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id ASC
LIMIT ?11

-- name: archive_schedule_newest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id < ?8 AND schedule_id = ?9 AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id DESC
LIMIT ?11

-- name: archive_schedule_oldest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id > ?8 AND schedule_id = ?9 AND (?10 IS NULL OR parent_id = ?10)
ORDER BY id ASC
LIMIT ?11

-- name: archive_parent_newest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id < ?8 AND (?9 IS NULL OR schedule_id = ?9) AND parent_id = ?10
ORDER BY id DESC
LIMIT ?11

-- name: archive_parent_oldest
SELECT {job}, {finished} FROM windlass_archive
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id > ?8 AND (?9 IS NULL OR schedule_id = ?9) AND parent_id = ?10
ORDER BY id ASC
LIMIT ?11

-- name: dead_newest
SELECT {job}, {finished} FROM windlass_dead
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id < ?8 AND (?9 IS NULL OR schedule_id = ?9)
    AND (?10 IS NULL OR parent_id = ?10) AND (?12 IS NULL OR fingerprint = ?12)
ORDER BY id DESC
LIMIT ?11

-- name: dead_oldest
SELECT {job}, {finished} FROM windlass_dead
WHERE {filter}
    AND (?7 IS NULL OR finished_at >= ?7) AND id > ?8 AND (?9 IS NULL OR schedule_id = ?9)
    AND (?10 IS NULL OR parent_id = ?10) AND (?12 IS NULL OR fingerprint = ?12)
ORDER BY id ASC
LIMIT ?11

-- name: dead_groups
-- Dead letters by fingerprint and tenant, the largest group first.
SELECT a.fingerprint, q.tenant, count(*) AS count, min(a.finished_at) AS first_seen, max(a.finished_at) AS last_seen,
    max(a.id) AS example
FROM windlass_dead a
JOIN windlass_queues q ON q.id = a.queue_id
WHERE (?1 IS NULL OR q.tenant = ?1)
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

-- name: dead_series
-- How many dead letters of each group failed in each step: ?11 when the first step begins, ?12 its length, ?13 the end.
SELECT a.fingerprint, q.tenant, (a.finished_at - ?11) / ?12 AS step, count(*) AS count
FROM windlass_dead a
JOIN windlass_queues q ON q.id = a.queue_id
WHERE (?1 IS NULL OR q.tenant = ?1)
    AND (?2 IS NULL OR q.name = ?2)
    AND (?3 IS NULL OR q.executor = ?3)
    AND (?4 IS NULL OR a.state IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR a.kind = ?5)
    AND (?6 IS NULL OR a.error_class = ?6)
    AND (?7 IS NULL OR a.finished_at >= ?7)
    AND (?8 IS NULL OR a.fingerprint = ?8)
    AND (?9 IS NULL OR a.schedule_id = ?9)
    AND (?10 IS NULL OR a.parent_id = ?10)
    AND a.finished_at >= ?11 AND a.finished_at < ?13
GROUP BY a.fingerprint, q.tenant, step
