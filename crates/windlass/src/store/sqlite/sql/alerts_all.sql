SELECT rule, subject, status, incident, since, fired_at, resolved_at, detail FROM windlass_alerts ORDER BY rule, subject
