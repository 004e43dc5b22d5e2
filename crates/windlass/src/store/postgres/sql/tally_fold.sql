-- tally_fold: deltas of long ago become minutes. A row is folded by whoever deletes it.
WITH old AS (
    DELETE FROM {schema}.tally_deltas WHERE at < $1::bigint RETURNING at, queue_id, kind, {tally_columns}
)
INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
SELECT 60000, t.at - t.at % 60000, t.queue_id, t.kind, {tally_sums}
FROM old t
GROUP BY 2, 3, 4
ORDER BY 2, 3, 4
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}
