-- partition_lock: one node at a time changes the archive's parts.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} partitions', 0))
