-- audits: the latest, newest first.
SELECT at, by, action, count, detail FROM {schema}.audits ORDER BY id DESC LIMIT $1::bigint
