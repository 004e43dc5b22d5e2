-- prune_rows: a batch of archived jobs past their retention, with their ledger.
WITH old AS (
    SELECT a.class, a.finished_at, a.id
    FROM unnest($3::bigint[], $4::text[]) AS i (queue_id, state)
    JOIN {schema}.archive a ON a.queue_id = i.queue_id AND a.state = i.state
    WHERE a.class = $1::text AND a.finished_at <= $2::bigint
    LIMIT $5::bigint
    FOR UPDATE OF a SKIP LOCKED
),
ledger AS (
    DELETE FROM {schema}.archive_attempts x USING old o
    WHERE x.job_id = o.id AND x.class = o.class AND x.job_finished_at = o.finished_at
),
gone AS (
    DELETE FROM {schema}.archive a USING old o
    WHERE a.id = o.id AND a.class = o.class AND a.finished_at = o.finished_at
    RETURNING a.id
)
SELECT count(*) FROM gone
