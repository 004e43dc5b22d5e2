-- Claim: due jobs stop waiting and run under a lease. A queue's jobs wait in twenty lanes (see the table
-- windlass_live).

-- name: claim_late
-- Whether any job should have started before ?1.
SELECT EXISTS (
    SELECT 1 FROM windlass_live INDEXED BY windlass_live_start_by
    WHERE start_by IS NOT NULL AND first_attempt_at IS NULL AND start_by <= ?1)

-- name: claim_paused
-- Queues whose jobs are not claimed.
SELECT id FROM windlass_queues INDEXED BY windlass_queues_paused WHERE paused = 1

-- name: claim_lane
-- The first lane from ?1 on and before ?2 in which jobs wait, and when its first job is due. Most queues use one or two
-- of their lanes, so this needs fewer index probes than looking into all twenty.
SELECT lane, due_at FROM windlass_waiting WHERE lane >= ?1 AND lane < ?2 ORDER BY lane, due_at LIMIT 1

-- name: claim_due
-- The first ?3 due jobs of a lane.
SELECT {due} FROM windlass_waiting WHERE lane = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3

-- name: claim_due_in_time
-- The same without jobs that should have started before ?2.
SELECT w.id, w.due_at
FROM windlass_waiting w
CROSS JOIN windlass_live l ON l.id = w.id
WHERE w.lane = ?1 AND w.due_at <= ?2 AND (l.start_by IS NULL OR l.start_by > ?2 OR l.first_attempt_at IS NOT NULL)
ORDER BY w.due_at, w.id
LIMIT ?3

-- name: claim_look
-- The first ?3 due jobs of a lane from (?4, ?5) on, for a claim of some kinds.
SELECT w.id, w.due_at, j.kind, (l.start_by <= ?2 AND l.first_attempt_at IS NULL) IS TRUE AS is_late
FROM windlass_waiting w
CROSS JOIN windlass_jobs j ON j.id = w.id
CROSS JOIN windlass_live l ON l.id = w.id
WHERE w.lane = ?1 AND w.due_at <= ?2 AND (w.due_at, w.id) >= (?4, ?5)
ORDER BY w.due_at, w.id
LIMIT ?3

-- name: claim_take_one
-- One job stops waiting.
DELETE FROM windlass_waiting WHERE lane = ?1 AND due_at = ?2 AND id = ?3

-- name: claim_take
-- The jobs of lane ?1 up to (?2, ?3) stop waiting: one range is much faster than one row at a time.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3)

-- name: claim_take_listed
-- The same for the listed jobs only.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3) AND id IN (SELECT value FROM json_each(?4))

-- name: claim_run
-- A job that waited runs now. Updates one row by its id, so that SQLite needs no journal for undoing half of the
-- statement.
UPDATE windlass_live SET lease_id = ?2, claimed_at = ?3 WHERE id = ?1

-- name: lease_grant
INSERT INTO windlass_leases (id, worker, expires_at, length_ms, job_ids, ends_at_boot)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (id) DO UPDATE SET job_ids = job_ids || ',' || excluded.job_ids

-- name: lane_next_due
-- When the first job of lane ?1 after ?2 is due.
SELECT due_at FROM windlass_waiting WHERE lane = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1
