-- Most jobs end with an attempt that left nothing but its success. Such an attempt is kept in its job's row of the archive: a row
-- of its own would be an eighth of what a job costs in all. All other attempts stay rows.
ALTER TABLE windlass_archive ADD COLUMN last_retry INTEGER;
ALTER TABLE windlass_archive ADD COLUMN last_started_at INTEGER;
ALTER TABLE windlass_archive ADD COLUMN last_finished_at INTEGER;
ALTER TABLE windlass_archive ADD COLUMN last_lease_id INTEGER;
ALTER TABLE windlass_archive ADD COLUMN last_worker TEXT;

-- The archive's attempts, wherever they are kept.
CREATE VIEW windlass_ended_attempts AS
SELECT job_id, number, lease_id, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why
FROM windlass_archive_attempts
UNION ALL
SELECT id, attempt, last_lease_id, last_retry, 'SUCCESS', last_started_at, last_finished_at, NULL, NULL, NULL, last_worker, NULL, NULL,
    'succeeded'
FROM windlass_archive
WHERE last_started_at IS NOT NULL;

DROP VIEW windlass_all_attempts;
CREATE VIEW windlass_all_attempts AS
SELECT job_id, number AS attempt, retry,
    CASE WHEN status = 'SNOOZED' THEN 'Snoozed' WHEN status = 'RELEASED' THEN 'Released' WHEN retry = 0 THEN 'Initial'
        ELSE 'Retry #' || retry END AS label,
    status,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
    finished_at - started_at AS duration_ms, error_class, error, note, worker,
    strftime('%Y-%m-%dT%H:%M:%fZ', next_run_at / 1000.0, 'unixepoch') AS next_run_at, delay AS delay_ms, why
FROM (
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why
    FROM windlass_attempts
    UNION ALL
    SELECT job_id, number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why
    FROM windlass_ended_attempts
);
