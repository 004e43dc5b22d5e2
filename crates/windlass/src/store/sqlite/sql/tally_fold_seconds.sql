-- tally_fold_seconds: deltas ?1 < id <= ?2, summed by the second they were made in. Windows begin with a second: no sum changes.
INSERT INTO windlass_tallies (at, queue_id, kind, enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost, postponed, successful_retries, backoff_ms, run_ms, pickup_ms)
SELECT at / 1000 * 1000 AS second, queue_id, kind, sum(enqueued), sum(replayed), sum(attempts), sum(first_attempts), sum(retries), sum(succeeded), sum(failed), sum(cancelled), sum(exhausted), sum(retried), sum(lost), sum(postponed), sum(successful_retries), sum(backoff_ms), sum(run_ms), sum(pickup_ms)
FROM windlass_tallies WHERE id > ?1 AND id <= ?2
GROUP BY second, queue_id, kind
