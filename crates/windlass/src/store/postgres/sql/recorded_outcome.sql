-- recorded_outcome: why a commit did not apply. `cancel`: the attempt holds, but a cancel was requested. `repeated`: it is in the ledger,
-- the same.
SELECT i.place,
       EXISTS (SELECT FROM {schema}.jobs j
               WHERE j.id = i.id AND j.attempt = i.attempt AND j.lease_id = i.lease_id AND j.cancel_requested) AS cancel,
       EXISTS (SELECT FROM {schema}.attempts a
               WHERE a.job_id = i.id AND a.number = i.attempt AND a.lease_id = i.lease_id AND a.status = i.status)
       OR EXISTS (SELECT FROM {schema}.ended_attempts a
               WHERE a.job_id = i.id AND a.number = i.attempt AND a.lease_id = i.lease_id AND a.status = i.status) AS repeated
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) WITH ORDINALITY AS i (id, attempt, lease_id, status, place)
