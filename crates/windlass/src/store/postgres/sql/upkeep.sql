-- name: expired
-- Waiting jobs whose latest start has passed before their first attempt, locked. Read along the index of latest starts,
-- up to now: by id, the planner would read all jobs.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
late AS MATERIALIZED (
    SELECT w.id
    FROM clock, {schema}.waiting w
    WHERE w.start_by <= clock.now
    ORDER BY w.start_by
    LIMIT $2::bigint
    FOR UPDATE OF w SKIP LOCKED
)
SELECT {live}, clock.now
FROM clock CROSS JOIN late JOIN {schema}.waiters j ON j.id = ANY (ARRAY[late.id])

-- name: prune_done
-- A batch of succeeded and cancelled jobs of some queues past their retention, with their attempts.
WITH old AS MATERIALIZED (
    SELECT o.job_id
    FROM unnest($2::bigint[]) AS i (queue_id)
    CROSS JOIN LATERAL (
        SELECT o.job_id
        FROM {schema}.attempts o
        WHERE o.queue_id = i.queue_id AND o.state IN ('succeeded', 'cancelled') AND o.state = $1::text AND o.ended_at <= $3::bigint
        ORDER BY o.ended_at
        LIMIT $4::bigint
        FOR UPDATE OF o SKIP LOCKED
    ) o
    LIMIT $4::bigint
),
ledger AS (DELETE FROM {schema}.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM old))),
gone AS (DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT job_id FROM old)))
SELECT count(*) AS pruned FROM old

-- name: prune_failed
-- A batch of failed jobs of some queues past their retention, with their attempts. Dead letters among them are counted.
WITH old AS MATERIALIZED (
    SELECT o.job_id, o.queue_id, o.discarded_at
    FROM unnest($3::bigint[]) AS i (queue_id)
    CROSS JOIN LATERAL (
        SELECT o.job_id, o.queue_id, o.discarded_at
        FROM {schema}.attempts o
        WHERE o.queue_id = i.queue_id AND o.state = 'failed' AND o.state = $2::text AND o.ended_at <= $4::bigint
        ORDER BY o.ended_at
        LIMIT $5::bigint
        FOR UPDATE OF o SKIP LOCKED
    ) o
    LIMIT $5::bigint
),
ledger AS (DELETE FROM {schema}.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM old))),
gone AS (DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT job_id FROM old))),
counted AS (
    INSERT INTO {schema}.tally_deltas (at, queue_id, kind, undead)
    SELECT {now}, o.queue_id, '', count(*) FROM old o WHERE o.discarded_at IS NULL GROUP BY o.queue_id
)
SELECT count(*) AS pruned FROM old

-- name: prune_keys
-- Keys whose window has passed, or whose job is no longer live.
DELETE FROM {schema}.keys k
WHERE (k.tenant, k.key) IN (
    SELECT o.tenant, o.key
    FROM {schema}.keys o
    WHERE o.expires_at <= {now} OR (o.expires_at IS NULL AND (
        NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = o.job_id)
        OR EXISTS (SELECT FROM {schema}.attempts e WHERE e.job_id = o.job_id AND e.state IS NOT NULL)))
    LIMIT $2::bigint
    FOR UPDATE SKIP LOCKED
)
RETURNING job_id

-- name: prune_workers
-- Workers not seen for a long time.
DELETE FROM {schema}.workers WHERE seen_at < $1::bigint
RETURNING worker
