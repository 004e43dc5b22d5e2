-- alerts: all of them.
SELECT rule, subject, status, incident, since, fired_at, resolved_at, detail FROM {schema}.alerts ORDER BY rule, subject
