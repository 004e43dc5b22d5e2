-- policies: policies by number.
SELECT p.id, p.line FROM {schema}.policies p WHERE p.id = ANY ($1::bigint[])
