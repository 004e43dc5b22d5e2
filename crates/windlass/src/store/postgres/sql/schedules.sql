-- name: schedule_add
INSERT INTO {schema}.schedules (tenant, cadence, zone, one_shot, overlap, missed, dead_letters, template, next_at, created_at)
VALUES ($2::text, $3::text, $4::text, $5::boolean, $6::text, $7::text, $8::text, $9::text, $10::bigint, {now})
RETURNING {schedule}

-- name: schedule
SELECT {schedule} FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text)

-- name: schedule_lock
-- One schedule, to be changed or fired.
SELECT {schedule} FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text) FOR UPDATE

-- name: schedules_newest
-- A page, newest first.
SELECT {schedule} FROM {schema}.schedules
WHERE ($1::bigint IS NULL OR id < $1::bigint) AND ($3::text IS NULL OR tenant = $3::text)
ORDER BY id DESC
LIMIT $2::bigint

-- name: schedules_oldest
-- A page, oldest first.
SELECT {schedule} FROM {schema}.schedules
WHERE ($1::bigint IS NULL OR id > $1::bigint) AND ($3::text IS NULL OR tenant = $3::text)
ORDER BY id
LIMIT $2::bigint

-- name: schedule_change
-- What an operator changed.
UPDATE {schema}.schedules
SET tenant = $2::text, cadence = $3::text, zone = $4::text, one_shot = $5::boolean, overlap = $6::text, missed = $7::text,
    dead_letters = $8::text, template = $9::text, paused = $10::boolean, next_at = $11::bigint
WHERE id = $1::bigint

-- name: schedule_remove
-- Its runs stay.
DELETE FROM {schema}.schedules WHERE id = $1::bigint AND ($2::text IS NULL OR tenant = $2::text)
RETURNING id

-- name: schedules_due
-- Schedules whose time has come, earliest first.
SELECT {schedule} FROM {schema}.schedules
WHERE NOT paused AND next_at <= {now}
ORDER BY next_at, id
LIMIT $2::bigint

-- name: schedules_next
-- When the next schedule will be due.
SELECT min(next_at) AS next_at FROM {schema}.schedules WHERE NOT paused AND next_at > {now}

-- name: schedule_fired
-- A firing is used up.
UPDATE {schema}.schedules
SET next_at = $2::bigint, last_at = coalesce($3::bigint, last_at), last_job = coalesce($4::bigint, last_job)
WHERE id = $1::bigint

-- name: schedule_dead
-- The run $2 has failed: it is the last that did. Locked first: of two runs that fail at once, the second finds the first.
UPDATE {schema}.schedules SET last_dead = $2::bigint WHERE id = $1::bigint

-- name: schedule_supersede
-- Dead letters whose place a later run has taken.
UPDATE {schema}.attempts
SET discarded_at = {now}, discard_reason = $3::text
WHERE job_id = $2::bigint AND state = 'failed' AND discarded_at IS NULL
RETURNING queue_id
