-- prune_workers: workers long gone.
DELETE FROM {schema}.workers WHERE seen_at < $1::bigint
RETURNING worker
