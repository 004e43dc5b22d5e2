-- Most jobs end with an attempt that left nothing but its success. Such an attempt is kept in its job's row of the archive: a row
-- of its own, with an entry in an index, would be a fifth of what finishing a job costs. All other attempts stay rows.
ALTER TABLE {schema}.archive
    ADD COLUMN last_retry integer,
    ADD COLUMN last_started_at bigint,
    ADD COLUMN last_finished_at bigint,
    ADD COLUMN last_lease_id bigint,
    ADD COLUMN last_worker text;

-- The archive's attempts, wherever they are kept.
CREATE VIEW {schema}.ended_attempts AS
SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why, lease_id
FROM {schema}.archive_attempts
UNION ALL
SELECT id, attempt, last_retry, 'SUCCESS', last_started_at, last_finished_at, NULL, NULL, NULL, last_worker, NULL, NULL, 'succeeded',
       last_lease_id
FROM {schema}.archive
WHERE last_started_at IS NOT NULL;

CREATE OR REPLACE VIEW {schema}.all_attempts AS
SELECT job_id, number AS attempt, retry,
       CASE status WHEN 'SNOOZED' THEN 'Snoozed' WHEN 'RELEASED' THEN 'Released'
           ELSE CASE retry WHEN 0 THEN 'Initial' ELSE 'Retry #' || retry END END AS label,
       status, {schema}.moment(started_at) AS started_at, {schema}.moment(finished_at) AS finished_at,
       finished_at - started_at AS duration_ms, error_class, error, note, worker,
       {schema}.moment(next_run_at) AS next_run_at, delay_ms, why
FROM (
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why
    FROM {schema}.attempts
    UNION ALL
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why
    FROM {schema}.ended_attempts
) a;
