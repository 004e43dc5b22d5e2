-- Deltas become seconds soon after they were made, seconds become minutes, minutes hours: a window is a few rows, however busy it was.
ALTER TABLE {schema}.tallies
    DROP CONSTRAINT tallies_span_ms_check,
    ADD CONSTRAINT tallies_span_ms_check CHECK (span_ms IN (1000, 60000, 3600000)),
    SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);

-- How many live jobs a queue had when its deltas were last taken away: with those that are there now, how many it has. Nobody
-- counts a million jobs to say so, and no commit waits for another to write it.
CREATE TABLE {schema}.balances (
    queue_id bigint PRIMARY KEY,
    live     bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Deltas that go leave their balance behind, whoever takes them: programs of before this migration do too.
CREATE FUNCTION {schema}.keep_balances() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    INSERT INTO {schema}.balances AS b (queue_id, live)
    SELECT g.queue_id, sum(g.enqueued + g.replayed - g.succeeded - g.failed - g.cancelled)
    FROM gone g
    GROUP BY g.queue_id
    ORDER BY g.queue_id
    ON CONFLICT (queue_id) DO UPDATE SET live = b.live + excluded.live;
    RETURN NULL;
END
$function$;

-- Making the trigger locks deltas out until this is committed: what is counted then is what there is.
CREATE TRIGGER keep_balances AFTER DELETE ON {schema}.tally_deltas
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION {schema}.keep_balances();

INSERT INTO {schema}.balances (queue_id, live)
SELECT c.queue_id, sum(c.live)
FROM (
    SELECT queue_id, count(*) AS live FROM {schema}.jobs GROUP BY queue_id
    UNION ALL
    SELECT queue_id, -(enqueued + replayed - succeeded - failed - cancelled) FROM {schema}.tally_deltas
) c
GROUP BY c.queue_id;
