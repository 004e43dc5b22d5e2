-- attempt_repeated: whether this very result ended the attempt before.
SELECT 1 FROM windlass_ended_attempts WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3 AND status = ?4
