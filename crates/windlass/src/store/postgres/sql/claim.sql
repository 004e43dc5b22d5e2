-- claim: take due jobs, turn by turn, under new leases. One row even if there is nothing to take: the time.
-- Takes nothing and says `full_walk` where order needs a closer look: jobs that lost a worker before are due and some may be taken, or an
-- at-most-once job lies beyond its turn's free slots.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
shares AS MATERIALIZED (
    SELECT t.share, t.queue_id, t.slots, t.slots + t.ahead AS wanted, clock.now
    FROM clock, unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (queue_id, slots, ahead, share)
    JOIN {schema}.queues q ON q.id = t.queue_id
    WHERE NOT q.paused
    ORDER BY t.share
),
due AS MATERIALIZED (
    SELECT t.share, t.slots, d.spot, d.at_most_once, row_number() OVER () AS rank
    FROM shares t
    CROSS JOIN LATERAL (
        SELECT j.spot, j.at_most_once
        FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
        CROSS JOIN LATERAL (
            SELECT j.ctid AS spot, j.at_most_once
            FROM {schema}.jobs j
            WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= t.now
              AND (j.due_at, j.id) >= (($11::bigint[])[(t.share - 1) * 5 + level.place], ($12::bigint[])[(t.share - 1) * 5 + level.place])
              AND j.state <> 'running' AND j.crashes = 0
              AND (j.start_by IS NULL OR j.start_by > t.now OR j.first_attempt_at IS NOT NULL)
            ORDER BY j.due_at, j.id
            LIMIT t.wanted
            FOR UPDATE OF j SKIP LOCKED
        ) j
        LIMIT t.wanted
    ) d
    LIMIT $5::bigint
),
full_walk AS MATERIALIZED (
    SELECT $6::bigint > 0 AND EXISTS (
               SELECT
               FROM shares t
               CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
               CROSS JOIN LATERAL (
                   SELECT FROM {schema}.jobs j
                   WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= t.now AND j.crashes > 0
                     AND j.state <> 'running'
                   LIMIT 1
               ) j
           )
           OR EXISTS (SELECT FROM due WHERE at_most_once) AND EXISTS (
               SELECT
               FROM (SELECT at_most_once, slots, row_number() OVER (PARTITION BY share ORDER BY rank) AS place FROM due) d
               WHERE d.at_most_once AND d.place > d.slots
           ) AS needs_full_walk
),
claimed AS (
    UPDATE {schema}.jobs j
    SET state = 'running', attempt = j.attempt + 1, claimed_at = clock.now,
        first_attempt_at = coalesce(j.first_attempt_at, clock.now),
        lease_id = ($9::bigint[])[CASE WHEN $10::boolean THEN 1 ELSE due.rank END]
    FROM due, clock, full_walk
    -- The rows are locked: they stay where they are, and need not be looked up again.
    WHERE j.ctid = due.spot AND NOT full_walk.needs_full_walk
    RETURNING due.rank, {live}
),
leased AS (
    INSERT INTO {schema}.leases (id, worker, expires_at, length_ms, job_ids)
    SELECT c.lease_id, $7::text, clock.now + $8::bigint, $8::bigint, array_agg(c.id)
    FROM claimed c, clock
    GROUP BY c.lease_id, clock.now
)
SELECT clock.now, full_walk.needs_full_walk, c.rank, {claimed}
FROM clock CROSS JOIN full_walk LEFT JOIN claimed c ON true
