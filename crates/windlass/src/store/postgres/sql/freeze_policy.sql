-- freeze_policy: jobs enqueued by the SQL function get the policy that was settled at their first claim.
UPDATE {schema}.jobs j
SET policy_id = i.policy_id
FROM unnest($1::bigint[], $2::bigint[]) AS i (id, policy_id)
WHERE j.id = i.id
