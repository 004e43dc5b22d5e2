-- tally_fold_minutes: seconds of long ago become minutes.
WITH old AS (
    DELETE FROM {schema}.tallies WHERE span_ms = 1000 AND start < $1::bigint RETURNING start, queue_id, kind, {tally_columns}
)
INSERT INTO {schema}.tallies AS t (span_ms, start, queue_id, kind, {tally_columns})
SELECT 60000, t.start - t.start % 60000, t.queue_id, t.kind, {tally_sums}
FROM old t
GROUP BY 2, 3, 4
ORDER BY 2, 3, 4
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {tally_adds}
