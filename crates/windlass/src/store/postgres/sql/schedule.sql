-- schedule: one of them.
SELECT {schedule} FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text)
