INSERT INTO windlass_alerts (rule, subject, status, incident, since, fired_at, resolved_at, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (rule, subject) DO UPDATE SET status = excluded.status, incident = excluded.incident, since = excluded.since,
    fired_at = excluded.fired_at, resolved_at = excluded.resolved_at, detail = excluded.detail
