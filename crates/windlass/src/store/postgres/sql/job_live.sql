-- job_live: live jobs by id.
SELECT {live} FROM {schema}.jobs j WHERE j.id = ANY ($1::bigint[])
