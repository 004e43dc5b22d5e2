-- balances_recount: what a queue's balance must be, counted, where it is not that. Only while nobody else folds.
INSERT INTO {schema}.balances AS b (queue_id, live)
SELECT c.queue_id, c.live
FROM (
    SELECT n.queue_id, sum(n.live) AS live
    FROM (
        SELECT queue_id, count(*) AS live FROM {schema}.jobs GROUP BY queue_id
        UNION ALL
        SELECT queue_id, -(enqueued + replayed - succeeded - failed - cancelled) FROM {schema}.tally_deltas
        UNION ALL
        SELECT queue_id, 0 FROM {schema}.balances
    ) n
    GROUP BY n.queue_id
) c
LEFT JOIN {schema}.balances known ON known.queue_id = c.queue_id
WHERE known.live IS DISTINCT FROM c.live
ON CONFLICT (queue_id) DO UPDATE SET live = excluded.live
RETURNING queue_id
