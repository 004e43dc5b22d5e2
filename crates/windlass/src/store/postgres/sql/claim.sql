-- claim: take due jobs, turn by turn, under new leases. One row even if there is nothing to take: the time.
-- Jobs that lost a worker before are picked by their own small index, at most $6 of them. At-most-once jobs beyond a turn's free
-- slots are stepped over, and then others are looked for behind them.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
turns AS MATERIALIZED (
    SELECT t.turn, t.queue_id, t.slots, t.slots + t.ahead AS wanted, clock.now
    FROM clock, unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (queue_id, slots, ahead, turn)
    JOIN {schema}.queues q ON q.id = t.queue_id
    WHERE NOT q.paused
    ORDER BY t.turn
),
plain AS MATERIALIZED (
    SELECT t.turn, t.slots, t.wanted, d.id, d.priority, d.due_at, d.at_most_once
    FROM turns t
    CROSS JOIN LATERAL (
        SELECT due.id, due.priority, due.due_at, due.at_most_once
        FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.due_at, j.at_most_once
            FROM {schema}.jobs j
            WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= t.now
              AND (j.due_at, j.id) >= (($11::bigint[])[(t.turn - 1) * 5 + level.place], ($12::bigint[])[(t.turn - 1) * 5 + level.place])
              AND j.state <> 'running' AND j.crashes = 0
              AND (j.start_by IS NULL OR j.start_by > t.now OR j.first_attempt_at IS NOT NULL)
            ORDER BY j.due_at, j.id
            LIMIT t.wanted
            FOR UPDATE OF j SKIP LOCKED
        ) due
        LIMIT t.wanted
    ) d
    LIMIT $5::bigint
),
crowded AS MATERIALIZED (
    SELECT DISTINCT p.turn
    FROM (SELECT turn, slots, at_most_once, row_number() OVER (PARTITION BY turn ORDER BY priority DESC, due_at, id) AS place FROM plain) p
    WHERE p.at_most_once AND p.place > p.slots
),
behind AS MATERIALIZED (
    SELECT t.turn, t.slots, t.wanted, d.id, d.priority, d.due_at, d.at_most_once
    FROM turns t JOIN crowded USING (turn)
    CROSS JOIN LATERAL (
        SELECT due.id, due.priority, due.due_at, due.at_most_once
        FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.due_at, j.at_most_once
            FROM {schema}.jobs j
            WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= t.now
              AND (j.due_at, j.id) >= (($11::bigint[])[(t.turn - 1) * 5 + level.place], ($12::bigint[])[(t.turn - 1) * 5 + level.place])
              AND j.state <> 'running' AND j.crashes = 0 AND NOT j.at_most_once
              AND (j.start_by IS NULL OR j.start_by > t.now OR j.first_attempt_at IS NOT NULL)
            ORDER BY j.due_at, j.id
            LIMIT t.wanted
            FOR UPDATE OF j SKIP LOCKED
        ) due
        LIMIT t.wanted
    ) d
    LIMIT $5::bigint
),
suspects AS MATERIALIZED (
    SELECT t.turn, t.slots, t.wanted, d.id, d.priority, d.due_at, d.at_most_once
    FROM turns t
    CROSS JOIN LATERAL (
        SELECT due.id, due.priority, due.due_at, due.at_most_once
        FROM unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.due_at, j.at_most_once
            FROM {schema}.jobs j
            WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= t.now
              AND j.state <> 'running' AND j.crashes > 0
              AND (j.start_by IS NULL OR j.start_by > t.now OR j.first_attempt_at IS NOT NULL)
            ORDER BY j.due_at, j.id
            LIMIT least(t.wanted, $6::bigint)
            FOR UPDATE OF j SKIP LOCKED
        ) due
        LIMIT least(t.wanted, $6::bigint)
    ) d
    LIMIT $6::bigint
),
placed AS (
    SELECT c.turn, c.slots, c.wanted, c.id, c.priority, c.due_at, c.at_most_once,
           row_number() OVER (PARTITION BY c.turn ORDER BY c.priority DESC, c.due_at, c.id) AS place
    FROM (
        SELECT turn, slots, wanted, id, priority, due_at, at_most_once FROM plain
        UNION ALL
        SELECT b.turn, b.slots, b.wanted, b.id, b.priority, b.due_at, b.at_most_once FROM behind b
        WHERE NOT EXISTS (SELECT FROM plain p WHERE p.id = b.id)
        UNION ALL
        SELECT turn, slots, wanted, id, priority, due_at, at_most_once FROM suspects
    ) c
),
counted AS (
    SELECT p.turn, p.slots, p.wanted, p.id, p.priority, p.due_at, p.at_most_once, p.place,
           count(*) FILTER (WHERE p.place > p.slots AND NOT p.at_most_once)
               OVER (PARTITION BY p.turn ORDER BY p.priority DESC, p.due_at, p.id) AS ahead
    FROM placed p
),
taken AS MATERIALIZED (
    SELECT c.id, row_number() OVER (ORDER BY c.turn, c.priority DESC, c.due_at, c.id) AS rank
    FROM counted c
    WHERE c.place <= c.slots OR (NOT c.at_most_once AND c.ahead <= c.wanted - c.slots)
    ORDER BY c.turn, c.priority DESC, c.due_at, c.id
    LIMIT $5::bigint
),
claimed AS (
    UPDATE {schema}.jobs j
    SET state = 'running', attempt = j.attempt + 1, claimed_at = clock.now,
        first_attempt_at = coalesce(j.first_attempt_at, clock.now),
        lease_id = ($9::bigint[])[CASE WHEN $10::boolean THEN 1 ELSE taken.rank END]
    FROM taken, clock
    WHERE j.id = taken.id
    RETURNING taken.rank, {live}
),
leased AS (
    INSERT INTO {schema}.leases (id, worker, expires_at, length_ms, job_ids)
    SELECT c.lease_id, $7::text, clock.now + $8::bigint, $8::bigint, array_agg(c.id ORDER BY c.rank)
    FROM claimed c, clock
    GROUP BY c.lease_id, clock.now
)
SELECT clock.now, c.rank, {claimed}
FROM clock LEFT JOIN claimed c ON true
