-- Claim: due jobs stop waiting and run under a lease. A queue's jobs wait in twenty lanes (see the table
-- windlass_waiting).

-- part: places
VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19)

-- name: claim_late
-- Whether any job should have started before ?1.
SELECT EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_start_by
    WHERE start_by IS NOT NULL AND first_attempt_at IS NULL AND start_by <= ?1)

-- name: claim_levels
-- Which lanes of queue ?1 have due jobs: twenty index probes, however many jobs wait for later.
WITH lanes (place) AS ({places})
SELECT place FROM lanes
WHERE EXISTS (SELECT 1 FROM windlass_waiting WHERE lane = ?1 * 20 + place AND due_at <= ?2)

-- name: claim_due
-- The first ?3 due jobs of a lane.
SELECT {due} FROM windlass_waiting WHERE lane = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3

-- name: claim_due_in_time
-- The same without jobs that should have started before ?2.
SELECT w.id, w.due_at
FROM windlass_waiting w
CROSS JOIN windlass_jobs j ON j.id = w.id
WHERE w.lane = ?1 AND w.due_at <= ?2 AND (j.start_by IS NULL OR j.start_by > ?2 OR j.first_attempt_at IS NOT NULL)
ORDER BY w.due_at, w.id
LIMIT ?3

-- name: claim_take
-- The jobs of lane ?1 up to (?2, ?3) stop waiting: one range is much faster than one row at a time.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3)

-- name: claim_take_listed
-- The same for the listed jobs only.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3) AND id IN (SELECT value FROM json_each(?4))

-- name: running_put
INSERT INTO windlass_running (id, lease_id, claimed_at) VALUES (?1, ?2, ?3)

-- name: lease_grant
INSERT INTO windlass_leases (id, worker, expires_at, length_ms, job_ids) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET job_ids = job_ids || ',' || excluded.job_ids

-- name: next_due
-- The first moment after ?2 at which a waiting job of queue ?1 becomes due.
WITH lanes (place) AS ({places})
SELECT min((SELECT due_at FROM windlass_waiting WHERE lane = ?1 * 20 + place AND due_at > ?2 ORDER BY due_at LIMIT 1))
FROM lanes
