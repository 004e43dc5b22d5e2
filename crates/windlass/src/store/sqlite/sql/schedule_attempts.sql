SELECT number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay, why, job_id FROM windlass_ended_attempts
WHERE job_id IN (
    SELECT id FROM windlass_live_jobs WHERE schedule_id = ?1
        AND (?2 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE tenant = ?2))
    UNION ALL
    SELECT id FROM windlass_archive WHERE schedule_id = ?1
        AND (?2 IS NULL OR queue_id IN (SELECT id FROM windlass_queues WHERE tenant = ?2)))
ORDER BY finished_at DESC, job_id DESC, number DESC
LIMIT ?3
