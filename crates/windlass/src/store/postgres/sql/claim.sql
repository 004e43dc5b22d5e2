-- name: claim_due
-- Takes due jobs, share by share, under new leases. Returns one row even if nothing is due: the time. Takes nothing and
-- sets `needs_full_walk` where the order needs a closer look: jobs that lost a worker before are due and some may be
-- taken, or an at-most-once job lies beyond the free slots of its share.
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
SELECT {claimed}, clock.now, full_walk.needs_full_walk, c.rank
FROM clock CROSS JOIN full_walk LEFT JOIN claimed c ON true

-- name: claim_pick
-- Every due job that a claim could take, locked. Which of them it takes is decided by the core rule.
WITH shares AS MATERIALIZED (
    SELECT t.share, t.queue_id, t.slots + t.ahead AS wanted
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (queue_id, slots, ahead, share)
    JOIN {schema}.queues q ON q.id = t.queue_id
    WHERE NOT q.paused
)
SELECT t.share, d.id, d.priority, d.due_at, d.at_most_once, d.crashes
FROM shares t
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT a.id, a.priority, a.due_at, a.at_most_once, a.crashes
    FROM (
        SELECT j.id, j.priority, j.due_at, j.at_most_once, j.crashes
        FROM {schema}.jobs j
        WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= $1::bigint
          AND j.state <> 'running' AND j.crashes = 0
          AND (j.start_by IS NULL OR j.start_by > $1::bigint OR j.first_attempt_at IS NOT NULL)
        ORDER BY j.due_at, j.id
        LIMIT t.wanted
        FOR UPDATE OF j SKIP LOCKED
    ) a
    UNION
    SELECT b.id, b.priority, b.due_at, b.at_most_once, b.crashes
    FROM (
        SELECT j.id, j.priority, j.due_at, j.at_most_once, j.crashes
        FROM {schema}.jobs j
        WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= $1::bigint
          AND j.state <> 'running' AND j.crashes = 0 AND NOT j.at_most_once
          AND (j.start_by IS NULL OR j.start_by > $1::bigint OR j.first_attempt_at IS NOT NULL)
        ORDER BY j.due_at, j.id
        LIMIT t.wanted
        FOR UPDATE OF j SKIP LOCKED
    ) b
    UNION
    SELECT c.id, c.priority, c.due_at, c.at_most_once, c.crashes
    FROM (
        SELECT j.id, j.priority, j.due_at, j.at_most_once, j.crashes
        FROM {schema}.jobs j
        WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at <= $1::bigint
          AND j.state <> 'running' AND j.crashes > 0
          AND (j.start_by IS NULL OR j.start_by > $1::bigint OR j.first_attempt_at IS NOT NULL)
        ORDER BY j.due_at, j.id
        LIMIT least(t.wanted, $5::bigint)
        FOR UPDATE OF j SKIP LOCKED
    ) c
) d

-- name: claim_take
-- Takes these jobs, which this transaction has locked, under these leases.
WITH claimed AS (
    UPDATE {schema}.jobs j
    SET state = 'running', attempt = j.attempt + 1, claimed_at = $1::bigint, lease_id = i.lease_id,
        first_attempt_at = coalesce(j.first_attempt_at, $1::bigint)
    FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (id, lease_id, rank)
    WHERE j.id = ANY (ARRAY[i.id])
    RETURNING i.rank, {live}
),
leased AS (
    INSERT INTO {schema}.leases (id, worker, expires_at, length_ms, job_ids)
    SELECT c.lease_id, $4::text, $1::bigint + $5::bigint, $5::bigint, array_agg(c.id ORDER BY c.rank)
    FROM claimed c
    GROUP BY c.lease_id
)
SELECT {claimed}, c.rank
FROM claimed c

-- name: next_due
-- When the first waiting job of these queues falls due after now: one index probe per queue and priority.
SELECT min(d.due_at) AS due_at
FROM unnest($2::bigint[]) AS t (queue_id)
JOIN {schema}.queues q ON q.id = t.queue_id AND NOT q.paused
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT j.due_at
    FROM {schema}.jobs j
    WHERE j.queue_id = t.queue_id AND j.priority = level.priority AND j.due_at > $1::bigint AND j.state <> 'running'
    ORDER BY j.due_at, j.id
    LIMIT 1
) d

-- name: freeze_policy
-- Jobs from the SQL function get the policy and the tenant's webhook that are in force at their first claim.
UPDATE {schema}.jobs j
SET policy_id = i.policy_id, webhook = i.webhook
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS i (id, policy_id, webhook)
WHERE j.id = ANY (ARRAY[i.id])
