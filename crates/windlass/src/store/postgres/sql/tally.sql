-- tally: what this transaction adds, one row per queue and kind.
INSERT INTO {schema}.tally_deltas (at, queue_id, kind, {tally_columns})
SELECT {now}, i.queue_id, i.kind, {tally_values}
FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS i (queue_id, kind, place)
