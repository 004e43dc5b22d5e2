-- Operations: cancel, replay, discard, amend.

-- name: standing
-- The columns of a job that a verdict depends on.
SELECT queue_id, kind, state, priority, due_at, start_by, first_attempt_at IS NOT NULL AS has_started, 0 AS is_discarded
FROM windlass_live_jobs WHERE id = ?1
UNION ALL
SELECT queue_id, kind, state, priority, due_at, start_by, first_attempt_at IS NOT NULL, discarded_at IS NOT NULL
FROM windlass_archive WHERE id = ?1

-- name: request_cancel
UPDATE windlass_live SET cancel_requested = 1 WHERE id = ?1

-- name: run_now
UPDATE windlass_live SET due_at = ?2 WHERE id = ?1

-- name: replay
-- An archived job waits again, with the allowance ?2 to ?6.
INSERT INTO windlass_live (id, lane, due_at, start_by, schedule_id, parent_id, claimed_at, attempt, failures, crashes,
    replays, previous_delay, error_class, error)
SELECT o.id, j.queue_id * 20 + (2 - j.priority) * 4 + j.at_most_once * 2 + (?4 > 0), ?2, ?6, o.schedule_id, o.parent_id,
    o.claimed_at, o.attempt, ?3, ?4, o.replays + 1, ?5, o.error_class, o.error
FROM windlass_outcomes o
CROSS JOIN windlass_jobs j ON j.id = o.id
WHERE o.id = ?1

-- name: discard
UPDATE windlass_outcomes SET discarded_at = ?2, discard_reason = ?3 WHERE id = ?1

-- name: amend
UPDATE windlass_live SET lane = lane / 20 * 20 + (2 - ?2) * 4 + lane % 4, due_at = ?3 WHERE id = ?1

-- name: amend_priority
UPDATE windlass_jobs SET priority = ?2 WHERE id = ?1 AND priority <> ?2

-- name: waiting_enter
-- A job waits as its row says.
INSERT INTO windlass_waiting (lane, due_at, id) SELECT lane, due_at, id FROM windlass_live WHERE id = ?1
RETURNING lane

-- name: waiting_leave
-- A job stops waiting, or is about to wait in another place than its row says.
DELETE FROM windlass_waiting WHERE (lane, due_at, id) = (SELECT lane, due_at, id FROM windlass_live WHERE id = ?1)
RETURNING lane

-- name: queue_pace
-- A replay with a rate: its queue has one that lasts until this job is due.
UPDATE windlass_queues SET paced_until = max(coalesce(paced_until, 0), (SELECT due_at FROM windlass_live WHERE id = ?1))
WHERE id = (SELECT lane / 20 FROM windlass_live WHERE id = ?1)

-- name: queue_paced
-- Replayed jobs that waited in a paused queue, if a replay with a rate was under way. Only paused queues have a
-- `paused_at`.
SELECT q.id, w.id, w.due_at
FROM windlass_queues q
CROSS JOIN windlass_waiting w ON w.lane BETWEEN q.id * 20 AND q.id * 20 + 19 AND w.due_at >= q.paused_at
CROSS JOIN windlass_live l ON l.id = w.id
WHERE q.tenant = ?1 AND q.name = ?2 AND q.paced_until >= q.paused_at
  AND l.replays > 0 AND l.is_retrying = 0
