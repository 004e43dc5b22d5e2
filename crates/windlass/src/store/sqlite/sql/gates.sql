-- Gates: who may start, who is parked behind them, and who has passed them.

-- name: gates_any
SELECT EXISTS (SELECT 1 FROM windlass_gates)

-- name: gates_of_queue
-- Whether a queue has gates, of its tenant ?1 or of all.
SELECT EXISTS (SELECT 1 FROM windlass_gates WHERE tenant = ?1 AND queue = ?2)
    OR EXISTS (SELECT 1 FROM windlass_gates WHERE tenant = '*' AND queue = ?2)

-- name: gate_find
SELECT id, state FROM windlass_gates WHERE tenant = ?1 AND queue = ?2 AND scope = ?3 AND key = ?4

-- name: gate_add
INSERT INTO windlass_gates (tenant, queue, scope, key, state, is_shut, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)
RETURNING id

-- name: gate_put
UPDATE windlass_gates SET state = ?2, is_shut = ?3, opens_at = ?4, changed_at = ?5 WHERE id = ?1

-- name: gate
SELECT {gate} FROM windlass_gates WHERE id = ?1

-- name: gates_open
-- Gates of a queue whose parked jobs a claim should look at, longest open first.
SELECT id FROM windlass_gates INDEXED BY windlass_gates_open
WHERE queue = ?1 AND tenant IN (?2, '*') AND opens_at IS NOT NULL AND opens_at <= ?3
ORDER BY opens_at
LIMIT ?4

-- name: gates_next
-- When the next gate of a queue opens.
SELECT min(opens_at) FROM windlass_gates INDEXED BY windlass_gates_open
WHERE queue = ?1 AND tenant IN (?2, '*') AND opens_at IS NOT NULL AND opens_at > ?3

-- name: gates_reopen
-- Settings have changed: a claim should look at everything parked.
UPDATE windlass_gates SET opens_at = ?1 WHERE EXISTS (SELECT 1 FROM windlass_parked p WHERE p.gate_id = windlass_gates.id)

-- name: gates_listed
SELECT {gate} FROM windlass_gates WHERE queue = ?1 ORDER BY tenant, scope DESC, key

-- name: gates_shut
SELECT {gate} FROM windlass_gates INDEXED BY windlass_gates_shut WHERE is_shut = 1 ORDER BY id

-- name: gates_old
-- Gates that have not changed for a while and have nothing parked behind them.
SELECT {gate} FROM windlass_gates g
WHERE g.changed_at < ?1 AND NOT EXISTS (SELECT 1 FROM windlass_parked p WHERE p.gate_id = g.id)
LIMIT ?2

-- name: gate_remove
DELETE FROM windlass_gates WHERE id = ?1

-- name: gate_parks
-- Whether anything is parked behind a gate.
SELECT EXISTS (SELECT 1 FROM windlass_parked WHERE gate_id = ?1)

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

-- name: unpark
DELETE FROM windlass_parked WHERE id = ?1 RETURNING lane, due_at

-- name: parked
SELECT p.id, p.gate_id FROM json_each(?1) listed CROSS JOIN windlass_parked p ON p.id = listed.value

-- name: offered
-- What gates need to know about the listed jobs, with their place in the list.
SELECT listed.key AS place, j.limit_key, j.http, l.failures, l.start_by, l.first_attempt_at
FROM json_each(?1) listed
CROSS JOIN windlass_live l ON l.id = listed.value
CROSS JOIN windlass_jobs j ON j.id = listed.value

-- name: pass_put
INSERT INTO windlass_passes (job_id, gate_ids, is_probe) VALUES (?1, ?2, ?3)

-- name: passes_any
SELECT EXISTS (SELECT 1 FROM windlass_passes)

-- name: pass_end
DELETE FROM windlass_passes WHERE job_id = ?1 RETURNING gate_ids, is_probe

-- name: probes
-- Those of the listed jobs that are probes.
SELECT p.job_id FROM json_each(?1) listed CROSS JOIN windlass_passes p ON p.job_id = listed.value WHERE p.is_probe = 1
