-- schedule_add: a new schedule.
INSERT INTO {schema}.schedules (tenant, cadence, zone, one_shot, overlap, missed, template, next_at, created_at)
VALUES ($2::text, $3::text, $4::text, $5::boolean, $6::text, $7::text, $8::text, $9::bigint, {now})
RETURNING {schedule}
