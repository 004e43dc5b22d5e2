-- Registry: tokens, workers, alerts, the audit log.

-- name: installation
SELECT id FROM windlass_installation

-- name: tokens
SELECT {token} FROM windlass_tokens ORDER BY created_at, rowid

-- name: token_put
INSERT INTO windlass_tokens ({token}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, scopes = excluded.scopes,
    tenant = excluded.tenant, queues = excluded.queues, created_at = excluded.created_at,
    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at

-- name: sessions
SELECT {session} FROM windlass_sessions WHERE expires_at > ?1 ORDER BY created_at

-- name: session_put
INSERT OR REPLACE INTO windlass_sessions ({session}) VALUES (?1, ?2, ?3, ?4)

-- name: sessions_ended
DELETE FROM windlass_sessions WHERE expires_at <= ?1

-- name: session_remove
DELETE FROM windlass_sessions WHERE hash = ?1

-- name: token_revoke
UPDATE windlass_tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL

-- name: workers
SELECT {worker} FROM windlass_workers WHERE seen_at >= ?1 ORDER BY worker

-- name: worker_report
INSERT INTO windlass_workers ({worker}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (worker) DO UPDATE SET host = excluded.host, version = excluded.version, queues = excluded.queues, kinds = excluded.kinds,
    running = excluded.running, started_at = excluded.started_at, seen_at = excluded.seen_at

-- name: alerts
SELECT {alert} FROM windlass_alerts ORDER BY rule, subject

-- name: alert
SELECT {alert} FROM windlass_alerts WHERE rule = ?1 AND subject = ?2

-- name: alert_put
INSERT INTO windlass_alerts ({alert}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (rule, subject) DO UPDATE SET measure = excluded.measure, tenant = excluded.tenant, queue = excluded.queue,
    status = excluded.status, incident = excluded.incident, since = excluded.since,
    fired_at = excluded.fired_at, resolved_at = excluded.resolved_at, notified_at = excluded.notified_at, detail = excluded.detail

-- name: audits
SELECT {audit} FROM windlass_audits ORDER BY id DESC LIMIT ?1

-- name: audit
INSERT INTO windlass_audits ({audit}) VALUES (?1, ?2, ?3, ?4, ?5)
