-- tally_fold_seconds: deltas of seconds that are over, a bounded number, become those seconds. A delta is folded by whoever deletes
-- it; one of a transaction that commits late is added to its second later.
WITH old AS (
    DELETE FROM {schema}.tally_deltas
    WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM {schema}.tally_deltas d WHERE d.at < $1::bigint LIMIT $2::bigint))
    RETURNING at, queue_id, kind, {tally_columns}
),
folded AS (
    INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
    SELECT 1000, t.at - t.at % 1000, t.queue_id, t.kind, {tally_sums}
    FROM old t
    GROUP BY 2, 3, 4
    ORDER BY 2, 3, 4
    ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}
)
SELECT count(*) FROM old
