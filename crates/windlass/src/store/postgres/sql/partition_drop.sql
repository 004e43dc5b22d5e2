-- partition_drop: a part of the archive that is past every retention. Not CONCURRENTLY, which no transaction can hold and no
-- lock timeout can bound through a pooler: the lock is asked for shortly, and again at the next prune.
SET LOCAL lock_timeout = 500;
ALTER TABLE {schema}.{parent} DETACH PARTITION {schema}.{name};
DROP TABLE {schema}.{name}
