-- Enqueue: new jobs, their ids and their idempotency keys.

-- name: ids_last
SELECT last FROM windlass_sequence WHERE one = 1

-- name: ids_reserve
-- Returns the last of ?1 fresh ids.
UPDATE windlass_sequence SET last = last + ?1 WHERE one = 1 RETURNING last

-- name: enqueue
INSERT INTO windlass_jobs (id, queue_id, priority, at_most_once, created_at, policy_id, kind, timeout_ms, idempotency_key,
    traceparent, limit_key, http, webhook, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)

-- name: live_put
INSERT INTO windlass_live (id, lane, due_at, start_by, schedule_id, parent_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: waiting_put
INSERT INTO windlass_waiting (lane, due_at, id) VALUES (?1, ?2, ?3)

-- name: key_find
-- The job that was stored under a key.
SELECT k.job_id, k.expires_at, EXISTS (SELECT 1 FROM windlass_live l WHERE l.id = k.job_id) AS is_live
FROM windlass_keys k
WHERE k.tenant = ?1 AND k.key = ?2

-- name: key_put
INSERT INTO windlass_keys (tenant, key, job_id, expires_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at

-- name: key_body
-- What a repeated key is compared with.
SELECT {body} FROM windlass_jobs WHERE id = ?1
