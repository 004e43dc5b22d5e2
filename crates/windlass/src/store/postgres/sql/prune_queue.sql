-- prune_queue: a batch of one queue's archived jobs past their retention, with their ledger.
WITH old AS (
    SELECT a.class, a.finished_at, a.id
    FROM {schema}.archive a
    WHERE a.class = $1::text AND a.finished_at < $2::bigint AND a.queue_id = $3::bigint AND a.state = $4::text
    ORDER BY a.finished_at
    LIMIT $5::bigint
    FOR UPDATE SKIP LOCKED
),
ledger AS (
    DELETE FROM {schema}.archive_attempts x USING old o
    WHERE x.job_id = o.id AND x.class = o.class AND x.job_finished_at = o.finished_at
)
DELETE FROM {schema}.archive a USING old o
WHERE a.id = o.id AND a.class = o.class AND a.finished_at = o.finished_at
