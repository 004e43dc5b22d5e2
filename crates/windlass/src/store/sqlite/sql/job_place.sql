-- job_place: where a job stands, and whether it is a dead letter.
SELECT queue_id, state, kind, 0 FROM windlass_live WHERE id = ?1
UNION ALL
SELECT queue_id, state, kind, state = 'failed' AND discarded_at IS NULL FROM windlass_archive WHERE id = ?1
