-- request_cancel: ask running jobs to stop.
UPDATE {schema}.jobs SET cancel_requested = true WHERE id = ANY ($1::bigint[]) AND NOT cancel_requested
