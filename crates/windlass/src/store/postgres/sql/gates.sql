-- name: gate_queues
-- Queues that have gates, or jobs of a replay with a rate.
SELECT q.id
FROM {schema}.queues q
WHERE EXISTS (SELECT FROM {schema}.gates g WHERE g.tenant = q.tenant AND g.queue = q.name)
   OR EXISTS (SELECT FROM {schema}.gates g WHERE g.tenant = '*' AND g.queue = q.name AND g.scope = 'queue')
   OR EXISTS (SELECT FROM {schema}.replayed r WHERE r.queue_id = q.id)

-- name: gate_claim_lock
-- One claim at a time asks the gates of a queue, whatever the tenant; always in the same order. Returns the time after
-- the wait: the locks are counted before.
SELECT {now} AS now
FROM (
    SELECT count(pg_advisory_xact_lock(hashtextextended(i.lock, 0))) AS locks
    FROM (SELECT DISTINCT unnest($2::text[]) AS lock ORDER BY 1) i
) l

-- name: gated_due
-- The first $3 due jobs of each priority of a gated queue from ($4, $5) on, locked, of whatever kind. None of a paused
-- queue.
SELECT j.kind, level.place, w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes, coalesce(w.failures, 0) AS failures, j.limit_key,
       j.http, r.gate_key
FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
CROSS JOIN LATERAL (
    SELECT w.id, w.priority, w.due_at, w.at_most_once, w.crashes, w.failures
    FROM {schema}.waiting w
    WHERE w.queue_id = $2::bigint AND w.priority = level.priority AND w.due_at <= $1::bigint AND w.gate_id IS NULL
      AND (w.due_at, w.id) >= (($4::bigint[])[level.place], ($5::bigint[])[level.place])
      AND (w.start_by IS NULL OR w.start_by > $1::bigint)
      AND NOT (SELECT q.paused FROM {schema}.queues q WHERE q.id = $2::bigint)
    ORDER BY w.due_at, w.id
    LIMIT $3::bigint
    FOR UPDATE OF w SKIP LOCKED
) w
JOIN {schema}.jobs j ON j.id = ANY (ARRAY[w.id])
LEFT JOIN {schema}.replayed r ON r.job_id = ANY (ARRAY[w.id])

-- name: gated_parked
-- The gates of a queue, and of replays, that may let something go, longest open first, each with the first jobs parked behind it, locked.
-- None of a paused queue.
SELECT g.id AS gate_id, w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes,
       coalesce(w.failures, 0) AS failures, j.limit_key, j.http, r.gate_key
FROM (
    SELECT g.id, CASE WHEN g.scope = 'key' THEN $8::bigint ELSE $6::bigint END AS most
    FROM {schema}.gates g
    WHERE g.queue IN ($3::text, 'replay') AND g.tenant IN ($4::text, '*') AND g.opens_at <= $1::bigint
      AND (g.queue = $3::text OR g.scope = 'replay')
      AND NOT (SELECT q.paused FROM {schema}.queues q WHERE q.id = $2::bigint)
    ORDER BY g.opens_at
    LIMIT $5::bigint
) g
LEFT JOIN LATERAL (
    SELECT w.id, w.priority, w.due_at, w.at_most_once, w.crashes, w.failures
    FROM {schema}.waiting w
    WHERE w.gate_id = g.id AND w.queue_id = $2::bigint AND (w.start_by IS NULL OR w.start_by > $1::bigint)
      AND ($7::text[] IS NULL OR (SELECT k.kind FROM {schema}.jobs k WHERE k.id = w.id) = ANY ($7::text[]))
    ORDER BY w.priority DESC, w.due_at, w.id
    LIMIT g.most
    FOR UPDATE OF w SKIP LOCKED
) w ON true
LEFT JOIN {schema}.jobs j ON j.id = ANY (ARRAY[w.id])
LEFT JOIN {schema}.replayed r ON r.job_id = ANY (ARRAY[w.id])

-- name: queue_paused
SELECT paused FROM {schema}.queues WHERE id = $1::bigint

-- name: gates_find
-- Gates by name, with their places in the list. They are not locked.
SELECT i.place, g.id, g.in_use, g.state
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS i (tenant, queue, scope, key, place)
JOIN {schema}.gates g ON (g.tenant, g.queue, g.scope, g.key) = (i.tenant, i.queue, i.scope, i.key)

-- name: gates_read
-- Gates by id. They are not locked: all gates of a claim are locked or counted at once, in the order of their ids.
SELECT g.id, g.tenant, g.queue, g.scope, g.key, g.in_use, g.state
FROM {schema}.gates g
WHERE g.id = ANY ($1::bigint[])

-- name: gates_lock
-- Gates by id, locked in the order of their ids.
SELECT g.id, g.in_use, g.state
FROM {schema}.gates g
WHERE g.id = ANY ($1::bigint[])
ORDER BY g.id
FOR UPDATE OF g

-- name: gates_add
-- Adds gates that do not exist, with so many attempts in use.
INSERT INTO {schema}.gates (tenant, queue, scope, key, in_use, state, is_shut, has_parked, changed_at)
SELECT i.tenant, i.queue, i.scope, i.key, i.in_use, $7::text, false, false, {now}
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::integer[]) AS i (tenant, queue, scope, key, in_use)
ORDER BY i.tenant, i.queue, i.scope, i.key
ON CONFLICT (tenant, queue, scope, key) DO NOTHING
RETURNING id, tenant, queue, scope, key

-- name: gates_start
-- Counts the starts of gates that only count, in the order of their ids. No row back: the gate is gone, or was held or
-- used otherwise since it was read.
UPDATE {schema}.gates g
SET in_use = g.in_use + i.started, changed_at = {now}
FROM unnest($2::bigint[], $3::integer[]) AS i (id, started)
WHERE g.id = ANY (ARRAY[i.id]) AND g.state = $4::text
RETURNING g.id, g.in_use

-- name: gates_end
-- Counts ended attempts, in the order of the ids of their gates. If jobs are parked behind a gate, a claim should look
-- at them: `has_parked` is read from the row as it is when its lock is granted, so no job that is being parked is missed.
UPDATE {schema}.gates g
SET in_use = greatest(g.in_use - i.ended, 0), changed_at = {now},
    opens_at = CASE WHEN g.has_parked THEN least(g.opens_at, {now}) ELSE g.opens_at END
FROM unnest($2::bigint[], $3::integer[]) AS i (id, ended)
WHERE g.id = ANY (ARRAY[i.id])
RETURNING g.id, g.tenant, g.scope, g.key, g.in_use, g.state, g.has_parked

-- name: gates_put
-- Writes gates that this transaction has locked or counted, and when a claim should look at what is parked behind them.
-- Whether anything is parked is looked up where jobs were parked or looked at.
UPDATE {schema}.gates g
SET in_use = i.in_use, state = i.state, is_shut = i.is_shut, changed_at = {now},
    has_parked = p.is_any OR NOT i.is_checked AND g.has_parked,
    opens_at = CASE WHEN p.is_any OR NOT i.is_checked AND g.has_parked THEN i.opens_at END
FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::boolean[], $6::bigint[], $7::boolean[])
     AS i (id, in_use, state, is_shut, opens_at, is_checked)
CROSS JOIN LATERAL (
    SELECT i.is_checked AND EXISTS (SELECT FROM {schema}.waiting w WHERE w.gate_id = i.id) AS is_any
) p
WHERE g.id = ANY (ARRAY[i.id])

-- name: gates_next
-- When the next gate of these queues opens.
SELECT min(n.opens_at) AS opens_at
FROM unnest($2::text[], $3::text[]) AS q (queue, tenant)
CROSS JOIN LATERAL (
    SELECT min(g.opens_at) AS opens_at
    FROM {schema}.gates g
    WHERE g.queue IN (q.queue, 'replay') AND g.tenant IN (q.tenant, '*') AND g.opens_at > $1::bigint
      AND (g.queue = q.queue OR g.scope = 'replay')
) n

-- name: gates_reopen
-- Settings have changed: claims should look at everything parked.
UPDATE {schema}.gates g SET opens_at = {now} WHERE g.has_parked

-- name: gates_listed
-- The gates of a queue.
SELECT g.id, g.tenant, g.queue, g.scope, g.key, g.in_use, g.state
FROM {schema}.gates g
WHERE g.queue = $1::text AND ($2::text IS NULL OR g.tenant = $2::text)
ORDER BY g.tenant, g.scope DESC, g.key
LIMIT $3::bigint

-- name: gates_shut
-- Gates that were held or had an open breaker when they were last written.
SELECT g.id, g.tenant, g.queue, g.scope, g.key, g.in_use, g.state
FROM {schema}.gates g
WHERE g.is_shut AND ($1::text IS NULL OR g.tenant = $1::text)
ORDER BY g.id

-- name: gates_parked
-- How many jobs are parked behind each of these gates, counted up to $2.
SELECT i.id, p.jobs
FROM unnest($1::bigint[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (SELECT FROM {schema}.waiting w WHERE w.gate_id = i.id LIMIT $2::bigint) w
) p

-- name: gates_old
-- Gates that have not changed for a while and have nothing parked behind them, locked.
SELECT g.id, g.tenant, g.queue, g.scope, g.key, g.in_use, g.state
FROM {schema}.gates g
WHERE g.changed_at < {now} - $2::bigint AND g.in_use = 0 AND NOT EXISTS (SELECT FROM {schema}.waiting w WHERE w.gate_id = g.id)
ORDER BY g.id
LIMIT $3::bigint
FOR UPDATE OF g SKIP LOCKED

-- name: gates_remove
DELETE FROM {schema}.gates WHERE id = ANY ($1::bigint[])
RETURNING id

-- name: park
-- Parks jobs, locked by this transaction, behind the gates that refused them.
UPDATE {schema}.waiting w SET gate_id = i.gate_id
FROM unnest($1::bigint[], $2::bigint[]) AS i (id, gate_id)
WHERE w.id = ANY (ARRAY[i.id])

-- name: parked
-- The gates that these jobs are parked behind.
SELECT w.id AS job_id, g.id, g.tenant, g.queue, g.scope, g.key, g.in_use, g.state
FROM {schema}.waiting w JOIN {schema}.gates g ON g.id = w.gate_id
WHERE w.id = ANY ($1::bigint[])

-- name: parked_before
-- How many jobs of the same queue are parked behind the same gate as a job and start before it, counted up to $2.
SELECT count(*) AS jobs
FROM {schema}.waiting own
CROSS JOIN LATERAL (
    SELECT w.priority, w.due_at, w.id
    FROM {schema}.waiting w
    WHERE w.gate_id = own.gate_id AND w.queue_id = own.queue_id
    ORDER BY w.priority DESC, w.due_at, w.id
    LIMIT $2::bigint
) w
WHERE own.id = $1::bigint AND (-w.priority, w.due_at, w.id) < (-own.priority, own.due_at, own.id)

-- name: replayed_put
-- Jobs that were sent again at a rate.
INSERT INTO {schema}.replayed (job_id, queue_id, gate_key)
SELECT i.job_id, i.queue_id, $3::text
FROM unnest($1::bigint[], $2::bigint[]) AS i (job_id, queue_id)
ON CONFLICT (job_id) DO UPDATE SET queue_id = excluded.queue_id, gate_key = excluded.gate_key
RETURNING job_id

-- name: replayed_end
-- Jobs that have finished, or were sent again without a rate.
DELETE FROM {schema}.replayed WHERE job_id = ANY ($1::bigint[])
RETURNING job_id

-- name: replayed_next
-- The $2 replayed jobs after one, and whether they are live.
SELECT r.job_id, EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = r.job_id)
    AND NOT EXISTS (SELECT FROM {schema}.attempts o WHERE o.job_id = r.job_id AND o.state IS NOT NULL) AS is_live
FROM (SELECT r.job_id FROM {schema}.replayed r WHERE r.job_id > $1::bigint ORDER BY r.job_id LIMIT $2::bigint) r
ORDER BY r.job_id

-- name: passes_put
-- The gates that the jobs of leases have passed.
INSERT INTO {schema}.passes (lease_id, jobs)
SELECT i.lease_id, i.jobs FROM unnest($1::bigint[], $2::text[]) AS i (lease_id, jobs)

-- name: passes
-- The gates that the jobs of these leases have passed.
SELECT p.lease_id, p.jobs FROM {schema}.passes p WHERE p.lease_id = ANY ($1::bigint[])
