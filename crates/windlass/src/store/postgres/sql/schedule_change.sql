-- schedule_change: what a person changed.
UPDATE {schema}.schedules
SET tenant = $2::text, cadence = $3::text, zone = $4::text, one_shot = $5::boolean, overlap = $6::text, missed = $7::text,
    template = $8::text, paused = $9::boolean, next_at = $10::bigint
WHERE id = $1::bigint
