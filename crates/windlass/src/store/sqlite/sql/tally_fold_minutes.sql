INSERT INTO windlass_tally_sums (span, at, queue_id, kind, enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost, postponed, successful_retries, backoff_ms, run_ms, pickup_ms)
SELECT 60000, at / 60000 * 60000 AS minute, queue_id, kind, sum(enqueued), sum(replayed), sum(attempts), sum(first_attempts), sum(retries), sum(succeeded), sum(failed), sum(cancelled), sum(exhausted), sum(retried), sum(lost), sum(postponed), sum(successful_retries), sum(backoff_ms), sum(run_ms), sum(pickup_ms)
FROM windlass_tallies WHERE at < ?1 AND id <= ?2
GROUP BY minute, queue_id, kind
ON CONFLICT (span, at, queue_id, kind) DO UPDATE SET
    enqueued = enqueued + excluded.enqueued,
    replayed = replayed + excluded.replayed,
    attempts = attempts + excluded.attempts,
    first_attempts = first_attempts + excluded.first_attempts,
    retries = retries + excluded.retries,
    succeeded = succeeded + excluded.succeeded,
    failed = failed + excluded.failed,
    cancelled = cancelled + excluded.cancelled,
    exhausted = exhausted + excluded.exhausted,
    retried = retried + excluded.retried,
    lost = lost + excluded.lost,
    postponed = postponed + excluded.postponed,
    successful_retries = successful_retries + excluded.successful_retries,
    backoff_ms = backoff_ms + excluded.backoff_ms,
    run_ms = run_ms + excluded.run_ms,
    pickup_ms = pickup_ms + excluded.pickup_ms
