-- Texts as they are stored, for sealing them with another key. A change names the row as it was read.

-- name: texts_jobs
SELECT j.id, 0, q.tenant, j.kind, json_object('payload', j.payload, 'http', j.http, 'webhook', j.webhook)
FROM windlass_jobs j JOIN windlass_queues q ON q.id = j.queue_id
WHERE j.id > ?1 ORDER BY j.id LIMIT ?3 + 0 * ?2

-- name: texts_live
SELECT id, 0, '', '', json_object('error', error) FROM windlass_live
WHERE id > ?1 AND error IS NOT NULL ORDER BY id LIMIT ?3 + 0 * ?2

-- name: texts_outcomes
SELECT id, 0, '', '', json_object('error', error, 'result', result) FROM windlass_outcomes
WHERE id > ?1 AND (error IS NOT NULL OR result IS NOT NULL) ORDER BY id LIMIT ?3 + 0 * ?2

-- name: texts_attempts
SELECT job_id, number, '', '', json_object('error', error, 'note', note, 'trace', trace) FROM windlass_attempts
WHERE (job_id, number) > (?1, ?2) AND (error IS NOT NULL OR note IS NOT NULL OR trace IS NOT NULL)
ORDER BY job_id, number LIMIT ?3

-- name: texts_schedules
SELECT id, 0, tenant, '', json_object('template', template) FROM windlass_schedules
WHERE id > ?1 ORDER BY id LIMIT ?3 + 0 * ?2

-- name: text_jobs_put
UPDATE windlass_jobs SET payload = ?4, http = ?6, webhook = ?8
WHERE id = ?1 AND ?2 = 0 AND payload IS ?3 AND http IS ?5 AND webhook IS ?7

-- name: text_live_put
UPDATE windlass_live SET error = ?4 WHERE id = ?1 AND ?2 = 0 AND error IS ?3

-- name: text_outcomes_put
UPDATE windlass_outcomes SET error = ?4, result = ?6
WHERE id = ?1 AND ?2 = 0 AND error IS ?3 AND result IS ?5

-- name: text_attempts_put
UPDATE windlass_attempts SET error = ?4, note = ?6, trace = ?8
WHERE job_id = ?1 AND number = ?2 AND error IS ?3 AND note IS ?5 AND trace IS ?7

-- name: text_schedules_put
UPDATE windlass_schedules SET template = ?4 WHERE id = ?1 AND ?2 = 0 AND template IS ?3

-- name: texts_settings
SELECT scope, tenant, name, node, value FROM windlass_settings ORDER BY scope, tenant, name, node

-- name: text_settings_put
UPDATE windlass_settings SET value = ?6
WHERE scope = ?1 AND tenant = ?2 AND name = ?3 AND node = ?4 AND value IS ?5
