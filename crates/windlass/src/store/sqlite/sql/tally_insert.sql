INSERT INTO windlass_tallies (at, queue_id, kind, enqueued, replayed, attempts, first_attempts, retries, succeeded, failed, cancelled, exhausted, retried, lost, postponed, successful_retries, backoff_ms, run_ms, pickup_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
