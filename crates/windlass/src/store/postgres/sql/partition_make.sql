-- partition_make: a part of the archive, made apart and then attached: that locks out nobody.
CREATE TABLE IF NOT EXISTS {schema}.{name} (LIKE {schema}.{parent} INCLUDING ALL);
ALTER TABLE {schema}.{parent} ATTACH PARTITION {schema}.{name} FOR VALUES FROM ({from}) TO ({to})
