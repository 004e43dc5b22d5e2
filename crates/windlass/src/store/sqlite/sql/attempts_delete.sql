DELETE FROM windlass_attempts WHERE job_id = ?1
