-- hasten: waiting jobs become due when a person says; a latest start that has passed no longer applies.
UPDATE {schema}.jobs j
SET due_at = i.due_at, start_by = CASE WHEN j.start_by < $3::bigint THEN NULL ELSE j.start_by END
FROM unnest($1::bigint[], $2::bigint[]) AS i (id, due_at)
WHERE j.id = i.id AND j.state <> 'running'
