-- worker_lock: a worker id's lock, held as long as the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('{schema} worker ' || $1::text, 0))
