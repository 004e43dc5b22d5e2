-- name: waiting_lock
-- Those of these jobs that wait, locked in id order: no claim takes them.
SELECT w.id FROM {schema}.waiting w WHERE w.id = ANY ($1::bigint[]) ORDER BY w.id FOR UPDATE OF w

-- name: running_lock
-- The leases that hold these jobs, locked in id order: no commit ends their attempts.
SELECT l.id FROM {schema}.leases l WHERE l.job_ids && $1::bigint[] ORDER BY l.id FOR UPDATE OF l

-- name: archived_lock
-- Those of these jobs that have finished, locked in id order: nobody replays or removes them.
SELECT o.job_id
FROM {schema}.attempts o
WHERE o.job_id = ANY ($1::bigint[]) AND o.state IS NOT NULL
ORDER BY o.job_id
FOR UPDATE OF o

-- name: request_cancel
-- Asks running jobs to stop.
UPDATE {schema}.leases l
SET cancels = coalesce(l.cancels, '{}') || i.ids
FROM (
    SELECT a.lease_id, array_agg(a.id) AS ids
    FROM unnest($1::bigint[], $2::bigint[]) AS a (id, lease_id)
    GROUP BY a.lease_id
) i
WHERE l.id = ANY (ARRAY[i.lease_id])

-- name: run_now
-- Waiting jobs become due at these times.
UPDATE {schema}.waiting w SET due_at = i.due_at, attempt = coalesce(w.attempt, 0), gate_id = NULL
FROM unnest($1::bigint[], $2::bigint[]) AS i (id, due_at)
WHERE w.id = ANY (ARRAY[i.id])

-- name: replay
-- Finished jobs, locked by this transaction, wait again under their own ids, with a fresh allowance.
WITH input AS MATERIALIZED (
    SELECT i.id, i.due_at, i.failures, i.crashes, i.previous_delay, i.start_by, o.number, o.replays, o.priority
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[])
         AS i (id, due_at, failures, crashes, previous_delay, start_by)
    JOIN {schema}.attempts o ON o.job_id = ANY (ARRAY[i.id]) AND o.state IS NOT NULL
),
never AS (DELETE FROM {schema}.attempts a USING input i WHERE a.job_id = ANY (ARRAY[i.id]) AND a.number = 0),
reopened AS (
    UPDATE {schema}.attempts a
    SET state = NULL, queue_id = NULL, ended_at = NULL, due_at = NULL, first_attempt_at = NULL, previous_delay = NULL,
        failures = NULL, crashes = NULL, replays = NULL, priority = NULL, cancel_requested = NULL, reason = NULL, result = NULL,
        fingerprint = NULL, message = NULL, discarded_at = NULL, discard_reason = NULL
    FROM input i
    WHERE a.job_id = ANY (ARRAY[i.id]) AND a.number = i.number AND i.number > 0
),
changed AS (
    UPDATE {schema}.jobs j SET start_by = i.start_by
    FROM input i
    WHERE j.id = ANY (ARRAY[i.id]) AND j.start_by IS DISTINCT FROM i.start_by
)
INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once, start_by, attempt, failures, crashes, replays, previous_delay)
SELECT i.id, j.queue_id, i.due_at, coalesce(i.priority, j.priority), j.at_most_once, i.start_by, i.number, i.failures, i.crashes,
       coalesce(i.replays, 0) + 1, i.previous_delay
FROM input i
JOIN {schema}.jobs j ON j.id = ANY (ARRAY[i.id])
RETURNING id

-- name: discard
-- Dead letters, locked by this transaction, that an operator has dealt with. Other attempts of the jobs have no state.
UPDATE {schema}.attempts
SET discarded_at = $1::bigint, discard_reason = $3::text
WHERE job_id = ANY ($2::bigint[]) AND state = 'failed'
RETURNING job_id

-- name: amend
-- Changes a waiting job.
UPDATE {schema}.waiting
SET priority = $2::smallint, due_at = $3::bigint, attempt = coalesce(attempt, 0), gate_id = NULL
WHERE id = $1::bigint
RETURNING id

-- name: queue_pace
-- Replays with a rate: these queues have ones that last until then.
UPDATE {schema}.queues SET paced_until = greatest(paced_until, $2::bigint) WHERE id = ANY ($1::bigint[])

-- name: queue_paced
-- Replayed jobs that waited in a paused queue, if a replay with a rate was under way. Only paused queues have a
-- `paused_at`.
SELECT w.queue_id, w.id, w.due_at
FROM {schema}.queues q JOIN {schema}.waiting w ON w.queue_id = q.id
WHERE q.tenant = $1::text AND q.name = $2::text AND q.paced_until >= q.paused_at
  AND w.replays > 0 AND NOT w.is_retrying AND w.due_at >= q.paused_at
FOR UPDATE OF w
