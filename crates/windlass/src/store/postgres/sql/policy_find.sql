-- policy_find: a policy's number.
SELECT p.id FROM {schema}.policies p WHERE p.line = $1::text
