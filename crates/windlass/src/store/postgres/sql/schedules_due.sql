-- schedules_due: those whose time has come, earliest first.
SELECT {schedule} FROM {schema}.schedules
WHERE NOT paused AND next_at <= {now}
ORDER BY next_at, id
LIMIT $2::bigint
