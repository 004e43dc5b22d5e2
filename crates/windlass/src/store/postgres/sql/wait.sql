-- wait: jobs whose attempt still holds wait for their next one; the attempt goes into the ledger. No row back for an id: it does
-- not hold, or a cancel was requested.
WITH waiting AS (
    UPDATE {schema}.jobs j
    SET state = i.state, due_at = i.due_at, failures = i.failures, crashes = i.crashes, previous_delay = coalesce(i.backoff, j.previous_delay), lease_id = NULL,
        error_class = coalesce(i.error_class, j.error_class), error = CASE WHEN i.error_class IS NULL THEN j.error ELSE i.error END
    FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::integer[], $8::integer[],
                $9::text[], $10::text[], $11::text[], $12::integer[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[], $18::bigint[])
         AS i (id, attempt, lease_id, state, due_at, delay, failures, crashes, error_class, error, status, retry, started_at,
               finished_at, worker, why, note, backoff)
    WHERE j.id = ANY (ARRAY[i.id]) AND j.attempt = i.attempt AND j.lease_id = i.lease_id AND NOT j.cancel_requested
    RETURNING j.id, i.attempt, i.lease_id, i.due_at, i.delay, i.error_class, i.error, i.status, i.retry, i.started_at, i.finished_at,
        i.worker, i.why, i.note
),
ledger AS (
    INSERT INTO {schema}.attempts (job_id, number, retry, started_at, finished_at, next_run_at, delay_ms, lease_id, status, worker,
        why, error_class, error, note)
    SELECT w.id, w.attempt, w.retry, w.started_at, w.finished_at, w.due_at, w.delay, w.lease_id, w.status, w.worker, w.why,
        w.error_class, w.error, w.note
    FROM waiting w
)
SELECT w.id FROM waiting w
