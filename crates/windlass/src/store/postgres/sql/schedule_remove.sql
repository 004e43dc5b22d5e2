-- schedule_remove: its runs stay.
DELETE FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text)
RETURNING id
