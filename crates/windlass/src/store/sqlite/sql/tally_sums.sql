-- tally_sums: what was counted since ?1, or ever. Beyond the last minutes, whole minutes and hours count from their start.
SELECT queue_id, kind, sum(enqueued), sum(replayed), sum(attempts), sum(first_attempts), sum(retries), sum(succeeded), sum(failed), sum(cancelled), sum(exhausted), sum(retried), sum(lost), sum(postponed), sum(successful_retries), sum(backoff_ms), sum(run_ms), sum(pickup_ms)
FROM (
    SELECT queue_id, kind, enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost, postponed, successful_retries, backoff_ms, run_ms, pickup_ms
    FROM windlass_tallies WHERE at >= coalesce(?1, 0)
    UNION ALL
    SELECT queue_id, kind, enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost, postponed, successful_retries, backoff_ms, run_ms, pickup_ms
    FROM windlass_tally_sums WHERE span IN (60000, 3600000) AND at >= coalesce(?1, 0))
GROUP BY queue_id, kind
ORDER BY queue_id, kind
