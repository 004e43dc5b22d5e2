-- schedule_fired: a firing is used up.
UPDATE {schema}.schedules
SET next_at = $2::bigint, last_at = coalesce($3::bigint, last_at), last_job = coalesce($4::bigint, last_job)
WHERE id = $1::bigint
