INSERT INTO windlass_schedules (id, tenant, cadence, zone, recurrence, overlap, missed, template, paused, next_at, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?10)
