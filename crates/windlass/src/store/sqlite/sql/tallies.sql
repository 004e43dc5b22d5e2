-- Tallies: what happened, counted. Commits insert deltas; folding sums them by second, minute and hour.

-- part: counts
enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost,
    postponed, successful_retries, backoff_ms, run_ms, pickup_ms

-- part: sums
sum(enqueued) AS enqueued, sum(replayed) AS replayed, sum(attempts) AS attempts,
    sum(first_attempts) AS first_attempts, sum(retries) AS retries, sum(succeeded) AS succeeded,
    sum(failed) AS failed, sum(cancelled) AS cancelled, sum(exhausted) AS exhausted, sum(retried) AS retried,
    sum(lost) AS lost, sum(postponed) AS postponed, sum(successful_retries) AS successful_retries,
    sum(backoff_ms) AS backoff_ms, sum(run_ms) AS run_ms, sum(pickup_ms) AS pickup_ms

-- part: added
enqueued = enqueued + excluded.enqueued, replayed = replayed + excluded.replayed,
    attempts = attempts + excluded.attempts, first_attempts = first_attempts + excluded.first_attempts,
    retries = retries + excluded.retries, succeeded = succeeded + excluded.succeeded,
    failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled,
    exhausted = exhausted + excluded.exhausted, retried = retried + excluded.retried, lost = lost + excluded.lost,
    postponed = postponed + excluded.postponed,
    successful_retries = successful_retries + excluded.successful_retries,
    backoff_ms = backoff_ms + excluded.backoff_ms, run_ms = run_ms + excluded.run_ms,
    pickup_ms = pickup_ms + excluded.pickup_ms

-- name: tally
INSERT INTO windlass_tally_deltas (at, queue_id, kind, {counts})
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)

-- name: tallies
-- What was counted since ?1, or ever. Before the last minutes, whole minutes and hours count from their start.
SELECT queue_id, kind, {sums}
FROM (
    SELECT queue_id, kind, {counts}
    FROM windlass_tally_deltas WHERE at >= coalesce(?1, 0)
    UNION ALL
    SELECT queue_id, kind, {counts}
    FROM windlass_tallies WHERE span_ms IN (60000, 3600000) AND start >= coalesce(?1, 0))
GROUP BY queue_id, kind
ORDER BY queue_id, kind

-- name: series
-- What was counted in each step: ?1 when the first step begins, ?2 its length, ?3 the end.
SELECT queue_id, (at - ?1) / ?2 AS step, {sums}
FROM (
    SELECT at, queue_id, {counts}
    FROM windlass_tally_deltas WHERE at >= ?1 AND at < ?3
    UNION ALL
    SELECT start, queue_id, {counts}
    FROM windlass_tallies WHERE span_ms IN (60000, 3600000) AND start >= ?1 AND start < ?3)
GROUP BY queue_id, step

-- name: tally_last
SELECT coalesce(max(id), 0) FROM windlass_tally_deltas

-- name: tally_fold_seconds
-- Deltas ?1 < id <= ?2, summed by the second they were made in. Windows begin with a second, so no sum changes.
INSERT INTO windlass_tally_deltas (at, queue_id, kind, {counts})
SELECT at / 1000 * 1000 AS second, queue_id, kind, {sums}
FROM windlass_tally_deltas WHERE id > ?1 AND id <= ?2
GROUP BY second, queue_id, kind

-- name: tally_folded_seconds
DELETE FROM windlass_tally_deltas WHERE id > ?1 AND id <= ?2

-- name: tally_fold_bound
-- The last of the oldest ?2 deltas made before ?1.
SELECT max(id) FROM (SELECT id FROM windlass_tally_deltas WHERE at < ?1 ORDER BY id LIMIT ?2)

-- name: tally_fold_minutes
INSERT INTO windlass_tallies (span_ms, start, queue_id, kind, {counts})
SELECT 60000, at / 60000 * 60000 AS minute, queue_id, kind, {sums}
FROM windlass_tally_deltas WHERE at < ?1 AND id <= ?2
GROUP BY minute, queue_id, kind
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {added}

-- name: tally_folded_minutes
DELETE FROM windlass_tally_deltas WHERE at < ?1 AND id <= ?2

-- name: tally_oldest_minute
SELECT min(start) FROM windlass_tallies WHERE span_ms = 60000 AND start < ?1

-- name: tally_fold_hours
-- The minutes of the hour that starts at ?1.
INSERT INTO windlass_tallies (span_ms, start, queue_id, kind, {counts})
SELECT 3600000, ?1, queue_id, kind, {sums}
FROM windlass_tallies WHERE span_ms = 60000 AND start >= ?1 AND start < ?1 + 3600000
GROUP BY queue_id, kind
ON CONFLICT (span_ms, start, queue_id, kind) DO UPDATE SET {added}

-- name: tally_folded_hours
DELETE FROM windlass_tallies WHERE span_ms = 60000 AND start >= ?1 AND start < ?1 + 3600000
