-- Texts as they are stored, for sealing them with another key. A change names the row as it was read.

-- name: texts_jobs
SELECT j.id AS key_a, 0::bigint AS key_b, q.tenant, j.kind,
       json_build_object('payload', j.payload, 'http', j.http, 'webhook', j.webhook)::text AS columns
FROM {schema}.jobs j JOIN {schema}.queues q ON q.id = j.queue_id
WHERE j.id > $1::bigint AND $2::bigint IS NOT NULL ORDER BY j.id LIMIT $3::bigint

-- name: texts_attempts
SELECT job_id AS key_a, number::bigint AS key_b, ''::text AS tenant, ''::text AS kind,
       json_build_object('error', error, 'note', note, 'trace', trace, 'result', result, 'message', message)::text AS columns
FROM {schema}.attempts
WHERE (job_id, number) > ($1::bigint, $2::bigint)
  AND (error IS NOT NULL OR note IS NOT NULL OR trace IS NOT NULL OR result IS NOT NULL OR message IS NOT NULL)
ORDER BY job_id, number LIMIT $3::bigint

-- name: texts_schedules
SELECT id AS key_a, 0::bigint AS key_b, tenant, ''::text AS kind,
       json_build_object('template', template)::text AS columns
FROM {schema}.schedules
WHERE id > $1::bigint AND $2::bigint IS NOT NULL ORDER BY id LIMIT $3::bigint

-- name: put_jobs
UPDATE {schema}.jobs SET payload = $4::text, http = $6::text, webhook = $8::text
WHERE id = $1::bigint AND $2::bigint = 0 AND payload IS NOT DISTINCT FROM $3::text
  AND http IS NOT DISTINCT FROM $5::text AND webhook IS NOT DISTINCT FROM $7::text
RETURNING id

-- name: put_attempts
UPDATE {schema}.attempts SET error = $4::text, note = $6::text, trace = $8::text, result = $10::text, message = $12::text
WHERE job_id = $1::bigint AND number = $2::bigint AND error IS NOT DISTINCT FROM $3::text
  AND note IS NOT DISTINCT FROM $5::text AND trace IS NOT DISTINCT FROM $7::text
  AND result IS NOT DISTINCT FROM $9::text AND message IS NOT DISTINCT FROM $11::text
RETURNING job_id

-- name: put_schedules
UPDATE {schema}.schedules SET template = $4::text
WHERE id = $1::bigint AND $2::bigint = 0 AND template IS NOT DISTINCT FROM $3::text
RETURNING id

-- name: texts_settings
SELECT scope, tenant, name, node, value FROM {schema}.settings ORDER BY scope, tenant, name, node

-- name: put_settings
UPDATE {schema}.settings SET value = $6::text
WHERE scope = $1::text AND tenant = $2::text AND name = $3::text AND node = $4::text
  AND value IS NOT DISTINCT FROM $5::text
RETURNING scope
