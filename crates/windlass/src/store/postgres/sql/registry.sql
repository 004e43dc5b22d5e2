-- name: installation
-- The installation's id.
SELECT id FROM {schema}.installation

-- name: tokens
-- Every token.
SELECT id, name, hash, scopes, tenant, queues, created_at, expires_at, revoked_at FROM {schema}.tokens ORDER BY created_at, id

-- name: token_put
-- A token, new or changed.
INSERT INTO {schema}.tokens (id, name, hash, scopes, tenant, queues, created_at, expires_at, revoked_at)
VALUES ($1::text, $2::text, $3::bytea, $4::text[], $5::text, $6::text[], $7::bigint, $8::bigint, $9::bigint)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, scopes = excluded.scopes, tenant = excluded.tenant,
    queues = excluded.queues, created_at = excluded.created_at, expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at
RETURNING id

-- name: sessions
-- Sessions that have not ended.
SELECT hash, token, created_at, expires_at FROM {schema}.sessions WHERE expires_at > {now} ORDER BY created_at

-- name: session_put
-- A session; those that have ended are removed.
WITH ended AS (DELETE FROM {schema}.sessions WHERE expires_at <= {now} AND hash <> $2::bytea)
INSERT INTO {schema}.sessions (hash, token, created_at, expires_at) VALUES ($2::bytea, $3::text, $4::bigint, $5::bigint)
ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at

-- name: session_remove
-- The browser has signed out.
DELETE FROM {schema}.sessions WHERE hash = $1::bytea RETURNING token

-- name: token_revoke
-- The token is no longer accepted.
UPDATE {schema}.tokens SET revoked_at = {now} WHERE id = $2::text AND revoked_at IS NULL
RETURNING id

-- name: worker_lock
-- A worker id's lock, held as long as the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('{schema} worker ' || $1::text, 0)) AS is_mine

-- name: worker_report
-- What a worker reports about itself.
INSERT INTO {schema}.workers (worker, host, version, queues, concurrency, running, started_at, seen_at, kinds)
VALUES ($1::text, $2::text, $3::text, $4::text[], $5::bigint[], $6::bigint, $7::bigint, $8::bigint, $9::text[])
ON CONFLICT (worker) DO UPDATE SET host = excluded.host, version = excluded.version, queues = excluded.queues,
    concurrency = excluded.concurrency, running = excluded.running, started_at = excluded.started_at, seen_at = excluded.seen_at,
    kinds = excluded.kinds
RETURNING worker

-- name: workers
-- Workers seen at or after a moment.
SELECT worker, host, version, queues, concurrency, running, started_at, seen_at, kinds
FROM {schema}.workers
WHERE seen_at >= $1::bigint
ORDER BY worker

-- name: alerts
-- Every alert.
SELECT rule, measure, subject, tenant, queue, status, incident, since, fired_at, resolved_at, notified_at, detail
FROM {schema}.alerts
ORDER BY rule, subject

-- name: alert_add
-- A new alert, unless another node made it.
INSERT INTO {schema}.alerts (rule, subject, status, incident, since, fired_at, resolved_at, detail, measure, tenant, queue, notified_at)
VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::text, $9::text, $10::text, $11::text, $12::bigint)
ON CONFLICT (rule, subject) DO NOTHING
RETURNING rule

-- name: alert_change
-- Only if the alert is still as it was read.
UPDATE {schema}.alerts
SET status = $3::text, incident = $4::bigint, since = $5::bigint, fired_at = $6::bigint, resolved_at = $7::bigint, detail = $8::text,
    measure = $9::text, tenant = $10::text, queue = $11::text, notified_at = $12::bigint
WHERE rule = $1::text AND subject = $2::text AND status = $13::text AND incident = $14::bigint
    AND notified_at IS NOT DISTINCT FROM $15::bigint
RETURNING rule

-- name: audit
-- What an operator did.
INSERT INTO {schema}.audits (at, by, action, count, detail) VALUES ($1::bigint, $2::text, $3::text, $4::bigint, $5::text)

-- name: audits
-- The latest, newest first.
SELECT at, by, action, count, detail FROM {schema}.audits ORDER BY id DESC LIMIT $1::bigint
