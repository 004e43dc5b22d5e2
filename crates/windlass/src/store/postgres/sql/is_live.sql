-- is_live: whether a job has not finished.
SELECT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = $1::bigint)
