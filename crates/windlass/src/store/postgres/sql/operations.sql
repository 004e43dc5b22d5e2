-- name: live_lock
-- Live jobs, locked in id order.
SELECT {live}
FROM {schema}.jobs j
WHERE j.id = ANY ($1::bigint[])
ORDER BY j.id
FOR UPDATE OF j

-- name: archived_lock
-- Archived jobs, locked in id order.
SELECT {archived}
FROM {schema}.archive j
WHERE j.id = ANY ($1::bigint[])
ORDER BY j.id
FOR UPDATE OF j

-- name: request_cancel
-- Asks running jobs to stop.
UPDATE {schema}.jobs SET cancel_requested = true WHERE id = ANY ($1::bigint[]) AND NOT cancel_requested

-- name: run_now
-- Waiting jobs become due at these times.
UPDATE {schema}.jobs j SET due_at = i.due_at
FROM unnest($1::bigint[], $2::bigint[]) AS i (id, due_at)
WHERE j.id = ANY (ARRAY[i.id]) AND j.state <> 'running'

-- name: replay
-- Archived jobs become live again under their own ids, with their attempts and a fresh allowance.
WITH taken AS (
    DELETE FROM {schema}.archive a
    USING unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[])
          AS i (id, due_at, failures, crashes, previous_delay, start_by)
    WHERE a.id = ANY (ARRAY[i.id])
    RETURNING a.class, a.finished_at, a.id, a.queue_id, i.due_at, i.failures, i.crashes, i.previous_delay, i.start_by, a.created_at,
        a.policy_id, a.claimed_at, a.timeout_ms, a.schedule_id, a.parent_id, a.attempt, a.replays, a.priority, a.at_most_once, a.kind,
        a.payload, a.idempotency_key,
        a.error_class, a.error, a.http, a.webhook, a.traceparent, a.retry_line, a.last_retry, a.last_started_at, a.last_finished_at,
        a.last_lease_id, a.last_worker
),
back AS (
    INSERT INTO {schema}.jobs (id, queue_id, due_at, created_at, policy_id, claimed_at, start_by, timeout_ms, schedule_id, parent_id,
        attempt, failures, crashes, previous_delay, replays, priority, at_most_once, state, kind, payload, idempotency_key,
        error_class, error, http, webhook, traceparent, retry_line)
    SELECT t.id, t.queue_id, t.due_at, t.created_at, t.policy_id, t.claimed_at, t.start_by, t.timeout_ms,
        t.schedule_id, t.parent_id, t.attempt, t.failures, t.crashes, t.previous_delay, t.replays + 1, t.priority, t.at_most_once,
        'queued', t.kind, t.payload, t.idempotency_key, t.error_class, t.error, t.http, t.webhook, t.traceparent, t.retry_line
    FROM taken t
),
ledger AS (
    DELETE FROM {schema}.archive_attempts x
    USING taken t
    WHERE x.job_id = ANY (ARRAY[t.id]) AND x.class = t.class AND x.job_finished_at = t.finished_at
    RETURNING x.job_id, x.number, x.retry, x.started_at, x.finished_at, x.next_run_at, x.delay_ms, x.lease_id, x.status, x.worker, x.why,
        x.error_class, x.error, x.note, x.trace, x.replay
),
moved AS (
    INSERT INTO {schema}.attempts (job_id, number, retry, started_at, finished_at, next_run_at, delay_ms, lease_id, status, worker, why,
        error_class, error, note, trace, replay)
    SELECT l.job_id, l.number, l.retry, l.started_at, l.finished_at, l.next_run_at, l.delay_ms, l.lease_id, l.status, l.worker, l.why,
        l.error_class, l.error, l.note, l.trace, l.replay
    FROM ledger l
    UNION ALL
    SELECT t.id, t.attempt, t.last_retry, t.last_started_at, t.last_finished_at, NULL, NULL, t.last_lease_id, 'SUCCESS', t.last_worker,
        'succeeded', NULL, NULL, NULL, NULL, t.replays
    FROM taken t
    WHERE t.last_started_at IS NOT NULL
)
SELECT t.id FROM taken t

-- name: discard
-- Dead letters that an operator has dealt with.
UPDATE {schema}.archive
SET discarded_at = $1::bigint, discard_reason = $3::text
WHERE id = ANY ($2::bigint[]) AND state = 'failed' AND discarded_at IS NULL
RETURNING id

-- name: amend
-- Changes a waiting job.
UPDATE {schema}.jobs
SET priority = $2::smallint, due_at = $3::bigint
WHERE id = $1::bigint AND state <> 'running'
RETURNING id

-- name: queue_pace
-- Replays with a rate: these queues have ones that last until then.
UPDATE {schema}.queues SET paced_until = greatest(paced_until, $2::bigint) WHERE id = ANY ($1::bigint[])

-- name: queue_paced
-- Replayed jobs that waited in a paused queue, if a replay with a rate was under way.
SELECT j.id, j.due_at
FROM {schema}.queues q JOIN {schema}.jobs j ON j.queue_id = q.id
WHERE q.tenant = $1::text AND q.name = $2::text AND q.paused AND q.paced_until >= q.paused_at
  AND j.replays > 0 AND j.state = 'queued' AND j.due_at >= q.paused_at
FOR UPDATE OF j
