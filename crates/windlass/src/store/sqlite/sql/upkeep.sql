-- Upkeep: jobs that were not started in time, and what is past its retention.

-- name: expired
-- Waiting jobs that should have started by ?1.
SELECT {job} FROM windlass_live
WHERE id IN (
        SELECT j.id FROM windlass_jobs j INDEXED BY windlass_jobs_start_by
        WHERE j.start_by IS NOT NULL AND j.first_attempt_at IS NULL AND j.start_by <= ?1)
    AND state <> 'running'
ORDER BY id
LIMIT ?2

-- name: prune_archive
-- Archived jobs of a queue and state that finished up to ?3.
SELECT id FROM windlass_archive INDEXED BY windlass_archive_age
WHERE queue_id = ?1 AND state = ?2 AND finished_at <= ?3
ORDER BY finished_at
LIMIT ?4

-- name: archive_delete
DELETE FROM windlass_archive WHERE id = ?1

-- name: prune_keys
DELETE FROM windlass_keys WHERE id IN (
    SELECT id FROM windlass_keys INDEXED BY windlass_keys_expires WHERE expires_at IS NOT NULL AND expires_at <= ?1 LIMIT ?2)

-- name: keys_next
-- The last of the ?2 keys after ?1.
SELECT max(id) FROM (SELECT id FROM windlass_keys WHERE id > ?1 ORDER BY id LIMIT ?2)

-- name: prune_live_keys
-- Of the ?2 keys after ?1, those that are valid only while their job is live, if it no longer is.
DELETE FROM windlass_keys
WHERE id IN (SELECT id FROM windlass_keys WHERE id > ?1 ORDER BY id LIMIT ?2)
    AND expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM windlass_jobs j WHERE j.id = windlass_keys.job_id)

-- name: prune_workers
DELETE FROM windlass_workers WHERE seen_at < ?1
