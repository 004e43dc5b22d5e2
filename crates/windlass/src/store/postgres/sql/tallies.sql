-- name: tally
-- What this transaction adds, one row per queue and kind.
INSERT INTO {schema}.tally_deltas (at, queue_id, kind, {tally_columns})
SELECT {now}, i.queue_id, i.kind, {tally_values}
FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS i (queue_id, kind, place)

-- name: tallies
-- Sums by queue and kind, and by the last of some moments (in their order) that they were counted at or after. What was
-- counted before the first moment is left out. A folded span was counted when it began. Also how many deltas wait to be
-- folded.
SELECT t.queue_id, t.kind, t.place, count(*) FILTER (WHERE t.is_delta) AS deltas, {tally_sums}
FROM (
    SELECT queue_id, kind, width_bucket(at, $1::bigint[]) AS place, true AS is_delta, {tally_columns}
    FROM {schema}.tally_deltas
    WHERE at >= ($1::bigint[])[1] AND kind <> '' AND ($2::bigint[] IS NULL OR queue_id = ANY ($2::bigint[]))
    UNION ALL
    SELECT queue_id, kind, width_bucket(start, $1::bigint[]), false, {tally_columns}
    FROM {schema}.tallies
    WHERE span_ms IN (1000, 60000, 3600000) AND kind <> '' AND start >= ($1::bigint[])[1] AND ($2::bigint[] IS NULL OR queue_id = ANY ($2::bigint[]))
) t
GROUP BY t.queue_id, t.kind, t.place

-- name: tally_lock
-- One transaction at a time folds tallies. Waits for the lock.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} tallies', 0))

-- name: tally_try_lock
-- The same without waiting: the node that holds the lock does the work.
SELECT pg_try_advisory_xact_lock(hashtextextended('{schema} tallies', 0)) AS is_mine

-- name: tally_fold_seconds
-- Deltas of seconds that are over, a bounded number, become those seconds. Those without a kind only affect balances. A delta is folded by the transaction that
-- deletes it; one of a transaction that commits late is added to its second later.
WITH old AS (
    DELETE FROM {schema}.tally_deltas
    WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM {schema}.tally_deltas d WHERE d.at < $1::bigint LIMIT $2::bigint))
    RETURNING at, queue_id, kind, {tally_columns}
),
folded AS (
    INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
    SELECT 1000, t.at - t.at % 1000, t.queue_id, t.kind, {tally_sums}
    FROM old t
    WHERE t.kind <> ''
    GROUP BY 2, 3, 4
    ORDER BY 2, 3, 4
    ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}
)
SELECT count(*) AS folded FROM old

-- name: tally_fold_minutes
-- Old seconds become minutes.
WITH old AS (
    DELETE FROM {schema}.tallies WHERE span_ms = 1000 AND start < $1::bigint RETURNING start, queue_id, kind, {tally_columns}
)
INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
SELECT 60000, t.start - t.start % 60000, t.queue_id, t.kind, {tally_sums}
FROM old t
GROUP BY 2, 3, 4
ORDER BY 2, 3, 4
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}

-- name: tally_fold_hours
-- Minutes of days ago become hours.
WITH old AS (
    DELETE FROM {schema}.tallies WHERE span_ms = 60000 AND start < $1::bigint RETURNING start, queue_id, kind, {tally_columns}
)
INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
SELECT 3600000, t.start - t.start % 3600000, t.queue_id, t.kind, {tally_sums}
FROM old t
GROUP BY 2, 3, 4
ORDER BY 2, 3, 4
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}

-- name: balances_recount
-- Corrects balances that differ from the counted jobs. Runs only while no other node folds.
INSERT INTO {schema}.balances AS b (queue_id, live, running, dead)
SELECT c.queue_id, c.live, c.running, c.dead
FROM (
    SELECT n.queue_id, sum(n.live) AS live, sum(n.running) AS running, sum(n.dead) AS dead
    FROM (
        SELECT w.queue_id, count(*) AS live, 0 AS running, 0 AS dead
        FROM {schema}.waiting w JOIN {schema}.jobs j ON j.id = w.id
        GROUP BY w.queue_id
        UNION ALL
        SELECT queue_id, count(*), count(*), 0 FROM {schema}.running GROUP BY queue_id
        UNION ALL
        SELECT queue_id, 0, 0, count(*) FROM {schema}.attempts WHERE state = 'failed' AND discarded_at IS NULL GROUP BY queue_id
        UNION ALL
        SELECT queue_id, -(enqueued + replayed - succeeded - failed - cancelled), -(claimed - attempts), -(failed - undead)
        FROM {schema}.tally_deltas
        UNION ALL
        SELECT queue_id, 0, 0, 0 FROM {schema}.balances
    ) n
    GROUP BY n.queue_id
) c
LEFT JOIN {schema}.balances known ON known.queue_id = c.queue_id
WHERE (known.live, known.running, known.dead) IS DISTINCT FROM (c.live, c.running, c.dead)
ON CONFLICT (queue_id) DO UPDATE SET live = excluded.live, running = excluded.running, dead = excluded.dead
RETURNING queue_id

-- name: count_undead
-- Dead letters that were replayed, discarded or not kept, by queue.
INSERT INTO {schema}.tally_deltas (at, queue_id, kind, undead)
SELECT {now}, i.queue_id, '', count(*) FROM unnest($2::bigint[]) AS i (queue_id) GROUP BY i.queue_id
