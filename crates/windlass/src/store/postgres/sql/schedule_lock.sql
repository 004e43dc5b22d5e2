-- schedule_lock: one of them, to be changed or fired.
SELECT {schedule} FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text) FOR UPDATE
