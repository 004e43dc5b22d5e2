-- Gates: who may start, who is parked behind them, and who has passed them.

-- name: gates_any
SELECT EXISTS (SELECT 1 FROM windlass_gates) OR EXISTS (SELECT 1 FROM windlass_replayed)

-- name: gates_of_queue
-- Whether a queue has gates, of its tenant ?1 or of all, or jobs of a replay with a rate.
SELECT EXISTS (SELECT 1 FROM windlass_gates WHERE tenant = ?1 AND queue = ?2)
    OR EXISTS (SELECT 1 FROM windlass_gates WHERE tenant = '*' AND queue = ?2 AND scope = 'queue')
    OR EXISTS (SELECT 1 FROM windlass_replayed WHERE queue_id = ?3)

-- name: gate_find
SELECT id, in_use, state FROM windlass_gates WHERE tenant = ?1 AND queue = ?2 AND scope = ?3 AND key = ?4

-- name: gate_add
-- A new gate with so many attempts in use.
INSERT INTO windlass_gates (tenant, queue, scope, key, in_use, state, is_shut, has_parked, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7)

-- name: gate_start
-- Counts starts at a gate that only counts.
UPDATE windlass_gates SET in_use = in_use + ?2, changed_at = ?3 WHERE id = ?1

-- name: gate_ending
-- A gate whose attempts have ended. Two statements, because an update with results takes twice as long as both.
SELECT tenant, scope, key, in_use, state, has_parked FROM windlass_gates WHERE id = ?1

-- name: gate_end
-- Counts ended attempts.
UPDATE windlass_gates SET in_use = max(in_use - ?2, 0), changed_at = ?3 WHERE id = ?1

-- name: gate_put
-- Writes a gate, and when a claim should look at what is parked behind it, if anything is.
UPDATE windlass_gates
SET in_use = ?2, state = ?3, is_shut = ?4, changed_at = ?6,
    has_parked = EXISTS (SELECT 1 FROM windlass_parked p WHERE p.gate_id = windlass_gates.id),
    opens_at = CASE WHEN ?5 IS NOT NULL AND EXISTS (SELECT 1 FROM windlass_parked p WHERE p.gate_id = windlass_gates.id) THEN ?5 END
WHERE id = ?1

-- name: gate
SELECT {gate} FROM windlass_gates WHERE id = ?1

-- name: gates_open
-- Gates of a queue, and of replays, whose parked jobs a claim should look at, longest open first.
SELECT {gate} FROM windlass_gates INDEXED BY windlass_gates_open
WHERE queue IN (?1, 'replay') AND tenant IN (?2, '*') AND opens_at IS NOT NULL AND opens_at <= ?3
    AND (queue = ?1 OR scope = 'replay')
ORDER BY opens_at
LIMIT ?4

-- name: gates_next
-- When the next gate of a queue, or of a replay, opens.
SELECT min(opens_at) FROM windlass_gates INDEXED BY windlass_gates_open
WHERE queue IN (?1, 'replay') AND tenant IN (?2, '*') AND opens_at IS NOT NULL AND opens_at > ?3
    AND (queue = ?1 OR scope = 'replay')

-- name: gates_reopen
-- Settings have changed: a claim should look at everything parked.
UPDATE windlass_gates SET opens_at = ?1 WHERE has_parked = 1

-- name: gates_listed
SELECT {gate} FROM windlass_gates WHERE queue = ?1 ORDER BY tenant, scope DESC, key

-- name: gates_shut
SELECT {gate} FROM windlass_gates INDEXED BY windlass_gates_shut WHERE is_shut = 1 ORDER BY id

-- name: gates_old
-- Gates that have not changed for a while and have nothing parked behind them.
SELECT {gate} FROM windlass_gates g
WHERE g.changed_at < ?1 AND g.in_use = 0 AND NOT EXISTS (SELECT 1 FROM windlass_parked p WHERE p.gate_id = g.id)
LIMIT ?2

-- name: gate_remove
DELETE FROM windlass_gates WHERE id = ?1

-- name: gate_parked
-- How many jobs are parked behind a gate, counted up to ?2.
SELECT count(*) FROM (SELECT 1 FROM windlass_parked WHERE gate_id = ?1 LIMIT ?2)

-- name: parked_lane
-- The first lane from ?2 on and before ?3 with jobs parked behind gate ?1.
SELECT lane FROM windlass_parked WHERE gate_id = ?1 AND lane >= ?2 AND lane < ?3 ORDER BY lane LIMIT 1

-- name: parked_due
-- The first ?3 jobs of a lane parked behind a gate; only those of the kinds ?4, if given.
SELECT {due} FROM windlass_parked
WHERE gate_id = ?1 AND lane = ?2
    AND (?4 IS NULL OR (SELECT j.kind FROM windlass_jobs j WHERE j.id = windlass_parked.id) IN (SELECT value FROM json_each(?4)))
ORDER BY due_at, id
LIMIT ?3

-- name: park
INSERT INTO windlass_parked (gate_id, lane, due_at, id) VALUES (?1, ?2, ?3, ?4)

-- name: parked_at
-- Where a parked job would wait.
SELECT lane, due_at FROM windlass_parked WHERE id = ?1

-- name: unpark
DELETE FROM windlass_parked WHERE id = ?1

-- name: parked
SELECT p.id, p.gate_id FROM json_each(?1) listed CROSS JOIN windlass_parked p ON p.id = listed.value

-- name: offered
-- What gates need to know about the listed jobs, with their place in the list.
SELECT listed.key AS place, j.limit_key, j.http, l.failures, l.start_by, l.first_attempt_at, r.gate_key
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = listed.value
LEFT JOIN windlass_replayed r ON r.job_id = listed.value

-- name: replayed_put
-- A job was sent again at a rate.
INSERT INTO windlass_replayed (job_id, queue_id, gate_key)
SELECT id, queue_id, ?2 FROM windlass_jobs WHERE id = ?1
ON CONFLICT (job_id) DO UPDATE SET gate_key = excluded.gate_key

-- name: replayed_end
-- A job has finished, or was sent again without a rate.
DELETE FROM windlass_replayed WHERE job_id = ?1

-- name: replayed_next
-- The ?2 rows after a job.
SELECT r.job_id, EXISTS (SELECT 1 FROM windlass_live l WHERE l.id = r.job_id) AS is_live
FROM windlass_replayed r WHERE r.job_id > ?1 ORDER BY r.job_id LIMIT ?2

-- name: parked_before
-- How many jobs of the same queue are parked behind the same gate as job ?1 and start before it, counted up to ?2. A
-- queue has 20 lanes, four of each priority.
SELECT count(*) FROM (
    SELECT 1
    FROM windlass_parked own
    CROSS JOIN windlass_parked p ON p.gate_id = own.gate_id AND p.lane >= own.lane / 20 * 20
        AND p.lane < own.lane / 4 * 4 + 4 AND (p.lane / 4, p.due_at, p.id) < (own.lane / 4, own.due_at, own.id)
    WHERE own.id = ?1
    LIMIT ?2
)

-- name: passes_put
-- The gates that jobs of a lease have passed.
INSERT INTO windlass_passes (lease_id, jobs) VALUES (?1, ?2)
ON CONFLICT (lease_id) DO UPDATE SET jobs = jobs || ';' || excluded.jobs

-- name: passes_any
SELECT EXISTS (SELECT 1 FROM windlass_passes)

-- name: passes
SELECT jobs FROM windlass_passes WHERE lease_id = ?1

-- name: passes_end
-- A lease has ended.
DELETE FROM windlass_passes WHERE lease_id = ?1
