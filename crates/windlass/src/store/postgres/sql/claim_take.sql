-- claim_take: take these jobs, which this transaction has locked, under these leases.
WITH claimed AS (
    UPDATE {schema}.jobs j
    SET state = 'running', attempt = j.attempt + 1, claimed_at = $1::bigint, lease_id = i.lease_id,
        first_attempt_at = coalesce(j.first_attempt_at, $1::bigint)
    FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (id, lease_id, rank)
    WHERE j.id = ANY (ARRAY[i.id])
    RETURNING i.rank, {live}
),
leased AS (
    INSERT INTO {schema}.leases (id, worker, expires_at, length_ms, job_ids)
    SELECT c.lease_id, $4::text, $1::bigint + $5::bigint, $5::bigint, array_agg(c.id ORDER BY c.rank)
    FROM claimed c
    GROUP BY c.lease_id
)
SELECT $1::bigint, false, c.rank, {claimed}
FROM claimed c
