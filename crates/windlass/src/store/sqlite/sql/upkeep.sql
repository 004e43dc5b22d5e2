-- Upkeep: jobs that were not started in time, and what is past its retention.

-- name: expired
-- Waiting jobs that should have started by ?1.
SELECT {job} FROM windlass_live_jobs
WHERE id IN (
        SELECT l.id FROM windlass_live l INDEXED BY windlass_live_start_by
        WHERE l.start_by IS NOT NULL AND l.first_attempt_at IS NULL AND l.start_by <= ?1)
    AND state <> 'running'
ORDER BY id
LIMIT ?2

-- name: prune_archive
-- Archived jobs of state ?1 that finished up to ?2, the oldest first, from the place (?3, ?4, ?5) on.
SELECT {past} FROM windlass_outcomes INDEXED BY windlass_outcomes_age
WHERE state = ?1 AND finished_at <= ?2 AND (finished_at, queue_id, id) > (?3, ?4, ?5)
ORDER BY finished_at, queue_id, id
LIMIT ?6

-- name: outcome_delete
DELETE FROM windlass_outcomes WHERE id = ?1

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
    AND expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM windlass_live l WHERE l.id = windlass_keys.job_id)

-- name: prune_workers
DELETE FROM windlass_workers WHERE seen_at < ?1

-- name: verify_live
SELECT count(*) FROM windlass_live l WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs j WHERE j.id = l.id)

-- name: verify_finished
SELECT count(*) FROM windlass_outcomes o WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs j WHERE j.id = o.id)

-- name: verify_jobs
SELECT count(*) FROM windlass_jobs j
WHERE NOT EXISTS (SELECT 1 FROM windlass_live l WHERE l.id = j.id)
    AND NOT EXISTS (SELECT 1 FROM windlass_outcomes o WHERE o.id = j.id)

-- name: verify_waiting
SELECT count(*) FROM windlass_waiting w
WHERE NOT EXISTS (SELECT 1 FROM windlass_live l WHERE l.id = w.id AND l.lane = w.lane)

-- name: verify_lanes
SELECT count(*) FROM windlass_lanes n
WHERE n.lane > 0 AND n.waiting <> (SELECT count(*) FROM windlass_waiting w WHERE w.lane = n.lane)
