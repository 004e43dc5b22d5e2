-- tallies: sums by queue and kind since a moment. A folded span counts if it began at or after it.
SELECT t.queue_id, t.kind, {tally_sums}
FROM (
    SELECT queue_id, kind, {tally_columns} FROM {schema}.tally_deltas WHERE $1::bigint IS NULL OR at >= $1::bigint
    UNION ALL
    SELECT queue_id, kind, {tally_columns} FROM {schema}.tallies WHERE $1::bigint IS NULL OR start >= $1::bigint
) t
JOIN {schema}.queues q ON q.id = t.queue_id
WHERE $2::text IS NULL OR q.tenant = $2::text
GROUP BY t.queue_id, t.kind
ORDER BY t.queue_id, t.kind
