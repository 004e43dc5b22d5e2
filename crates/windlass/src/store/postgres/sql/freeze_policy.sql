-- freeze_policy: jobs enqueued by the SQL function get the policy and the tenant's webhook that held at their first claim.
UPDATE {schema}.jobs j
SET policy_id = i.policy_id, webhook = i.webhook
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS i (id, policy_id, webhook)
WHERE j.id = ANY (ARRAY[i.id])
