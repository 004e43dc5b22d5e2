-- key_lock: one caller at a time per idempotency key, always in the same order.
SELECT pg_advisory_xact_lock(h.hash)
FROM (
    SELECT DISTINCT hashtextextended('{schema}' || ' ' || i.tenant || ' ' || i.key, 0) AS hash
    FROM unnest($1::text[], $2::text[]) AS i (tenant, key)
    ORDER BY 1
) h
