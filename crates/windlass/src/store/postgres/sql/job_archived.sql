-- job_archived: archived jobs by id, by each partition's index.
SELECT {archived} FROM {schema}.archive j WHERE j.id = ANY ($1::bigint[])
