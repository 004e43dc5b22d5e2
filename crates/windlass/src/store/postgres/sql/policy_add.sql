-- policy_add: a policy's row, unless it is there.
INSERT INTO {schema}.policies (line) VALUES ($1::text) ON CONFLICT (line) DO NOTHING
