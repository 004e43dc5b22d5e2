-- claim_pick: every due job that a claim could take, locked; which of them it takes is decided by walking them in order.
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
