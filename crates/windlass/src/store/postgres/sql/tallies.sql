-- tallies: sums by queue and kind, and by the last of some moments (in their order) that they were counted at or after; what was
-- counted before the first is left out. A folded span was counted when it began. And how many deltas wait to be folded.
SELECT t.queue_id, t.kind, t.place, count(*) FILTER (WHERE t.is_delta), {tally_sums}
FROM (
    SELECT queue_id, kind, width_bucket(at, $1::bigint[]) AS place, true AS is_delta, {tally_columns}
    FROM {schema}.tally_deltas
    WHERE at >= ($1::bigint[])[1] AND ($2::bigint[] IS NULL OR queue_id = ANY ($2::bigint[]))
    UNION ALL
    SELECT queue_id, kind, width_bucket(start, $1::bigint[]), false, {tally_columns}
    FROM {schema}.tallies
    WHERE span_ms IN (1000, 60000, 3600000) AND start >= ($1::bigint[])[1] AND ($2::bigint[] IS NULL OR queue_id = ANY ($2::bigint[]))
) t
GROUP BY t.queue_id, t.kind, t.place
