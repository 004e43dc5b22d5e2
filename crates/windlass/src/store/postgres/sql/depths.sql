-- depths: how full each queue is. Nothing is counted that may be large: what is live is its balance and the deltas since; what runs
-- is what leases cover; what waits for later is counted along the claim index, up to $3 of each priority.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
live AS MATERIALIZED (
    SELECT b.queue_id, sum(b.live)::bigint AS live
    FROM (
        SELECT queue_id, live FROM {schema}.balances
        UNION ALL
        SELECT queue_id, enqueued + replayed - succeeded - failed - cancelled FROM {schema}.tally_deltas
    ) b
    GROUP BY b.queue_id
),
running AS MATERIALIZED (
    -- A clock that was set back leaves running jobs that are due later.
    SELECT j.queue_id, count(*) AS running, count(*) FILTER (WHERE j.due_at > clock.now) AS early
    FROM clock, {schema}.leases l
    CROSS JOIN LATERAL unnest(l.job_ids) AS held (id)
    JOIN {schema}.jobs j ON j.id = held.id AND j.lease_id = l.id
    GROUP BY j.queue_id
),
dead AS MATERIALIZED (
    SELECT a.queue_id, count(*) AS dead
    FROM {schema}.archive a
    WHERE a.class = 'failed' AND a.state = 'failed' AND a.discarded_at IS NULL
    GROUP BY a.queue_id
)
SELECT q.id, clock.now, coalesce(l.live, 0), coalesce(r.running, 0), coalesce(r.early, 0), coalesce(d.dead, 0), coalesce(w.later, 0),
       coalesce(w.is_many, false), w.oldest_due
FROM clock CROSS JOIN {schema}.queues q
LEFT JOIN live l ON l.queue_id = q.id
LEFT JOIN running r ON r.queue_id = q.id
LEFT JOIN dead d ON d.queue_id = q.id
LEFT JOIN LATERAL (
    SELECT sum(later.jobs)::bigint AS later, bool_or(later.jobs >= $3::bigint) AS is_many, min(oldest.due_at) AS oldest_due
    FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs
        FROM (SELECT FROM {schema}.jobs j
              WHERE j.queue_id = q.id AND j.priority = level.priority AND j.due_at > clock.now LIMIT $3::bigint) j
    ) later
    LEFT JOIN LATERAL (
        SELECT j.due_at
        FROM {schema}.jobs j
        WHERE j.queue_id = q.id AND j.priority = level.priority AND j.due_at <= clock.now AND j.state <> 'running'
        ORDER BY j.due_at, j.id
        LIMIT 1
    ) oldest ON true
) w ON l.live <> 0
WHERE $2::text IS NULL OR q.tenant = $2::text
ORDER BY q.id
