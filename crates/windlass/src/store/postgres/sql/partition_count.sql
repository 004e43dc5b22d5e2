-- partition_count: how many archived jobs go with a partition.
SELECT count(*) FROM {schema}.archive a WHERE a.class = $1::text AND a.finished_at >= $2::bigint AND a.finished_at < $3::bigint
