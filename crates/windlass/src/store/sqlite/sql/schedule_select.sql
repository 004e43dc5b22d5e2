SELECT id, tenant, cadence, zone, recurrence, overlap, missed, template, paused, next_at, last_at, last_job, created_at
FROM windlass_schedules
