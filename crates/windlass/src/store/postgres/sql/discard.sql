-- discard: dead letters a person has dealt with. The first reason stands.
UPDATE {schema}.archive
SET discarded_at = {now}, discard_reason = $3::text
WHERE id = ANY ($2::bigint[]) AND state = 'failed' AND discarded_at IS NULL
RETURNING id
