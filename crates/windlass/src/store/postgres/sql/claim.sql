-- name: taken
-- Part of claims: what is known of a job that waited.
w.id, w.queue_id, w.due_at, w.priority, w.attempt, w.failures, w.crashes, w.replays, w.previous_delay, w.first_attempt_at

-- name: leasing
-- Part of claims: the leases of the jobs in `taken`, by the values in `clock`; and the count of what now runs. How the jobs
-- waited is written down only if one of them had been claimed, changed or replayed before.
past AS MATERIALIZED (SELECT EXISTS (SELECT FROM taken t WHERE t.attempt IS NOT NULL) AS is_any),
leased AS (
    INSERT INTO {schema}.leases (id, claimed_at, worker, job_ids, attempts, failures, crashes, replays, previous_delays,
                            first_attempts_at, dues_at, priorities)
    SELECT t.lease_id, clock.now, clock.worker, array_agg(t.id), NULL::integer[], NULL::integer[], NULL::integer[], NULL::integer[],
           NULL::bigint[], NULL::bigint[], NULL::bigint[], NULL::smallint[]
    FROM clock, taken t
    WHERE NOT (SELECT is_any FROM past)
    GROUP BY t.lease_id, clock.now, clock.worker
    UNION ALL
    SELECT t.lease_id, clock.now, clock.worker, array_agg(t.id), array_agg(coalesce(t.attempt, 0) + 1), array_agg(t.failures),
           array_agg(t.crashes), array_agg(t.replays), array_agg(t.previous_delay), array_agg(t.first_attempt_at), array_agg(t.due_at),
           array_agg(t.priority)
    FROM clock, taken t
    WHERE (SELECT is_any FROM past)
    GROUP BY t.lease_id, clock.now, clock.worker
    RETURNING id
),
ends AS (
    INSERT INTO {schema}.lease_ends (id, expires_at, length_ms)
    SELECT l.id, clock.now + clock.length, clock.length FROM clock, leased l
),
counted AS (
    INSERT INTO {schema}.tally_deltas (at, queue_id, kind, claimed)
    SELECT clock.now, t.queue_id, '', count(*) FROM clock, taken t GROUP BY clock.now, t.queue_id
)

-- name: claimed_rows
-- Part of claims: the jobs in `taken` as they now run.
SELECT t.rank, t.id, t.queue_id, j.kind, j.payload, t.priority, 'running'::text AS state, j.at_most_once, j.policy_id, j.retry_line,
       coalesce(t.attempt, 0) + 1 AS attempt, coalesce(t.failures, 0) AS failures, coalesce(t.crashes, 0) AS crashes,
       coalesce(t.replays, 0) AS replays, j.created_at, t.due_at, coalesce(t.first_attempt_at, clock.now) AS first_attempt_at,
       clock.now AS claimed_at, coalesce(t.previous_delay, 0) AS previous_delay, j.start_by, j.timeout_ms, j.idempotency_key,
       false AS cancel_requested, t.lease_id, e.error_class, e.error, j.http, j.webhook, j.schedule_id, j.parent_id, j.traceparent,
       j.limit_key
FROM clock CROSS JOIN taken t
JOIN {schema}.jobs j ON j.id = ANY (ARRAY[t.id])
LEFT JOIN LATERAL (
    SELECT a.error_class, a.error
    FROM {schema}.attempts a
    WHERE a.job_id = ANY (ARRAY[t.id]) AND a.error_class IS NOT NULL
    ORDER BY a.number DESC
    LIMIT 1
) e ON t.attempt > 0

-- name: claim_due
-- Takes due jobs, share by share, under new leases. Returns one row even if nothing is due: the time. Takes nothing and
-- sets `needs_full_walk` where the order needs a closer look: jobs that lost a worker before are due and some may be
-- taken, or an at-most-once job lies beyond the free slots of its share.
WITH clock AS MATERIALIZED (SELECT {now} AS now, $7::text AS worker, $8::bigint AS length),
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
            SELECT w.ctid AS spot, w.at_most_once
            FROM {schema}.waiting w
            WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= t.now
              AND (w.due_at, w.id) >= (($11::bigint[])[(t.share - 1) * 5 + level.place], ($12::bigint[])[(t.share - 1) * 5 + level.place])
              AND w.gate_id IS NULL AND (w.crashes IS NULL OR w.crashes = 0)
              AND (w.start_by IS NULL OR w.start_by > t.now)
            ORDER BY w.due_at, w.id
            LIMIT t.wanted
            FOR UPDATE OF w SKIP LOCKED
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
                   SELECT FROM {schema}.waiting w
                   WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= t.now AND w.crashes > 0
                   LIMIT 1
               ) w
           )
           OR EXISTS (SELECT FROM due WHERE at_most_once) AND EXISTS (
               SELECT
               FROM (SELECT at_most_once, slots, row_number() OVER (PARTITION BY share ORDER BY rank) AS place FROM due) d
               WHERE d.at_most_once AND d.place > d.slots
           ) AS needs_full_walk
),
taken AS (
    DELETE FROM {schema}.waiting w
    USING due, full_walk
    -- The rows are locked: they stay where they are, and need not be looked up again.
    WHERE w.ctid = due.spot AND NOT full_walk.needs_full_walk
    RETURNING due.rank, ($9::bigint[])[CASE WHEN $10::boolean THEN 1 ELSE due.rank END] AS lease_id, {taken}
),
{leasing}
SELECT {claimed}, clock.now, full_walk.needs_full_walk, c.rank
FROM clock CROSS JOIN full_walk LEFT JOIN ({claimed_rows}) c ON true

-- name: claim_pick
-- Every due job that a claim could take, locked. Which of them it takes is decided by the core rule. Jobs that lost a
-- worker have started, so no latest start applies to them.
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
        SELECT w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes
        FROM {schema}.waiting w
        WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= $1::bigint
          AND w.gate_id IS NULL AND (w.crashes IS NULL OR w.crashes = 0)
          AND (w.start_by IS NULL OR w.start_by > $1::bigint)
        ORDER BY w.due_at, w.id
        LIMIT t.wanted
        FOR UPDATE OF w SKIP LOCKED
    ) a
    UNION
    SELECT b.id, b.priority, b.due_at, b.at_most_once, b.crashes
    FROM (
        SELECT w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes
        FROM {schema}.waiting w
        WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= $1::bigint
          AND w.gate_id IS NULL AND (w.crashes IS NULL OR w.crashes = 0) AND NOT w.at_most_once
          AND (w.start_by IS NULL OR w.start_by > $1::bigint)
        ORDER BY w.due_at, w.id
        LIMIT t.wanted
        FOR UPDATE OF w SKIP LOCKED
    ) b
    UNION
    SELECT c.id, c.priority, c.due_at, c.at_most_once, c.crashes
    FROM (
        SELECT w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes
        FROM {schema}.waiting w
        WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= $1::bigint
          AND w.gate_id IS NULL AND w.crashes > 0
        ORDER BY w.due_at, w.id
        LIMIT least(t.wanted, $5::bigint)
        FOR UPDATE OF w SKIP LOCKED
    ) c
) d

-- name: claim_kinds
-- Due jobs of the kinds $6 that a claim could take, locked, and the time. Looks at $7 due jobs of each share and priority at
-- most, from ($8, $9) on. Without suspects unless $10, without at-most-once jobs unless $11.
WITH clock AS MATERIALIZED (SELECT {now} AS now),
shares AS MATERIALIZED (
    SELECT t.share, t.queue_id, least(t.slots + t.ahead, $5::bigint) AS wanted, clock.now
    FROM clock, unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (queue_id, slots, ahead, share)
    JOIN {schema}.queues q ON q.id = t.queue_id
    WHERE NOT q.paused
)
SELECT clock.now, f.share, f.id, f.priority, f.due_at, f.at_most_once, f.crashes
FROM clock
LEFT JOIN (
    SELECT t.share, d.id, d.priority, d.due_at, d.at_most_once, d.crashes
    FROM shares t
    CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
    CROSS JOIN LATERAL (
        SELECT w.id, w.priority, w.due_at, w.at_most_once, coalesce(w.crashes, 0) AS crashes
        FROM (
            SELECT a.due_at, a.id
            FROM {schema}.waiting a
            WHERE a.queue_id = t.queue_id AND a.priority = level.priority AND a.due_at <= t.now AND a.gate_id IS NULL
              AND (a.due_at, a.id) >= (($8::bigint[])[(t.share - 1) * 5 + level.place], ($9::bigint[])[(t.share - 1) * 5 + level.place])
            ORDER BY a.due_at, a.id
            LIMIT $7::bigint
        ) s
        JOIN {schema}.jobs j ON j.id = ANY (ARRAY[s.id]) AND j.kind = ANY ($6::text[])
        JOIN {schema}.waiting w ON w.id = ANY (ARRAY[s.id])
        -- Checked again on the locked row, which may have changed meanwhile. By an expression, so that no plan looks the row
        -- up in the index of its queue, which would read the whole backlog for each job.
        WHERE w.queue_id + 0 = t.queue_id AND w.priority = level.priority AND w.due_at <= t.now AND w.gate_id IS NULL
          AND ($10::boolean OR w.crashes IS NULL OR w.crashes = 0) AND ($11::boolean OR NOT w.at_most_once)
          AND (w.start_by IS NULL OR w.start_by > t.now)
        ORDER BY s.due_at, s.id
        LIMIT t.wanted
        FOR UPDATE OF w SKIP LOCKED
    ) d
) f ON true

-- name: claim_looked
-- The first job that a claim of some kinds did not look at, for each share and priority with more due jobs than $3.
SELECT t.share, level.place, d.due_at, d.id
FROM unnest($2::bigint[]) WITH ORDINALITY AS t (queue_id, share)
JOIN {schema}.queues q ON q.id = t.queue_id AND NOT q.paused
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) WITH ORDINALITY AS level (priority, place)
CROSS JOIN LATERAL (
    SELECT w.due_at, w.id
    FROM {schema}.waiting w
    WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at <= $1::bigint AND w.gate_id IS NULL
      AND (w.due_at, w.id) >= (($4::bigint[])[(t.share - 1) * 5 + level.place], ($5::bigint[])[(t.share - 1) * 5 + level.place])
    ORDER BY w.due_at, w.id
    OFFSET $3::bigint
    LIMIT 1
) d

-- name: claim_take
-- Takes these jobs, which this transaction has locked, under these leases.
WITH clock AS MATERIALIZED (SELECT $1::bigint AS now, $4::text AS worker, $5::bigint AS length),
taken AS (
    DELETE FROM {schema}.waiting w
    USING unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (id, lease_id, rank)
    WHERE w.id = ANY (ARRAY[i.id])
    RETURNING i.rank, i.lease_id, {taken}
),
{leasing}
SELECT {claimed}, c.rank
FROM clock CROSS JOIN ({claimed_rows}) c

-- name: next_due
-- When the first waiting job of these queues falls due after now: one index probe per queue and priority.
SELECT min(d.due_at) AS due_at
FROM unnest($2::bigint[]) AS t (queue_id)
JOIN {schema}.queues q ON q.id = t.queue_id AND NOT q.paused
CROSS JOIN unnest(ARRAY[2, 1, 0, -1, -2]::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT w.due_at
    FROM {schema}.waiting w
    WHERE w.queue_id = t.queue_id AND w.priority = level.priority AND w.due_at > $1::bigint AND w.gate_id IS NULL
    ORDER BY w.due_at, w.id
    LIMIT 1
) d

-- name: freeze_policy
-- Jobs from the SQL function get the policy and the tenant's webhook that are in force at their first claim.
UPDATE {schema}.jobs j
SET policy_id = i.policy_id, webhook = i.webhook
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS i (id, policy_id, webhook)
WHERE j.id = ANY (ARRAY[i.id])
