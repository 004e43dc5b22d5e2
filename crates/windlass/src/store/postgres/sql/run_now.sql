-- run_now: waiting jobs become due now, if they are not.
UPDATE {schema}.jobs SET due_at = least(due_at, $2::bigint) WHERE id = ANY ($1::bigint[]) AND state <> 'running'
