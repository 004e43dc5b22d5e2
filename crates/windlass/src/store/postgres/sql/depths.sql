-- depths: how full each queue is. Nothing is counted that may be large: what is live is its balance and the deltas since; what runs
-- is what leases cover; what waits for later is counted along the claim index, up to $3 of each priority. Summed and not joined:
-- there may be thousands of queues.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
sums AS MATERIALIZED (
    SELECT p.queue_id, sum(p.live)::bigint AS live, sum(p.running)::bigint AS running, sum(p.early)::bigint AS early,
           sum(p.dead)::bigint AS dead
    FROM (
        SELECT id AS queue_id, true AS is_asked, 0 AS live, 0 AS running, 0 AS early, 0 AS dead
        FROM {schema}.queues
        WHERE $2::text IS NULL OR tenant = $2::text
        UNION ALL
        SELECT queue_id, false, live, 0, 0, 0 FROM {schema}.balances
        UNION ALL
        SELECT queue_id, false, enqueued + replayed - succeeded - failed - cancelled, 0, 0, 0 FROM {schema}.tally_deltas
        UNION ALL
        -- A clock that was set back leaves running jobs that are due later.
        SELECT j.queue_id, false, 0, 1, (j.due_at > clock.now)::integer, 0
        FROM clock, {schema}.leases l
        CROSS JOIN LATERAL unnest(l.job_ids) AS held (id)
        JOIN {schema}.jobs j ON j.id = held.id AND j.lease_id = l.id
        UNION ALL
        SELECT a.queue_id, false, 0, 0, 0, 1
        FROM {schema}.archive a
        WHERE a.class = 'failed' AND a.state = 'failed' AND a.discarded_at IS NULL
    ) p
    GROUP BY p.queue_id
    HAVING bool_or(p.is_asked)
)
SELECT s.queue_id, clock.now, s.live, s.running, s.early, s.dead, coalesce(w.later, 0), coalesce(w.is_many, false), w.oldest_due
FROM clock CROSS JOIN sums s
LEFT JOIN LATERAL (
    SELECT sum(later.jobs)::bigint AS later, bool_or(later.jobs >= $3::bigint) AS is_many, min(oldest.due_at) AS oldest_due
    FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs
        FROM (SELECT FROM {schema}.jobs j
              WHERE j.queue_id = s.queue_id AND j.priority = level.priority AND j.due_at > clock.now LIMIT $3::bigint) j
    ) later
    LEFT JOIN LATERAL (
        SELECT j.due_at
        FROM {schema}.jobs j
        WHERE j.queue_id = s.queue_id AND j.priority = level.priority AND j.due_at <= clock.now AND j.state <> 'running'
        ORDER BY j.due_at, j.id
        LIMIT 1
    ) oldest ON true
) w ON s.live <> 0
ORDER BY s.queue_id
