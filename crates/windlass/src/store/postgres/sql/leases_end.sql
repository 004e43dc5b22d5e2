-- leases_end: leases whose last job was committed.
DELETE FROM {schema}.leases WHERE id = ANY ($1::bigint[])
