-- schedules_oldest: a page, oldest first.
SELECT {schedule} FROM {schema}.schedules
WHERE ($1::bigint IS NULL OR id > $1::bigint) AND ($3::text IS NULL OR tenant = $3::text)
ORDER BY id
LIMIT $2::bigint
