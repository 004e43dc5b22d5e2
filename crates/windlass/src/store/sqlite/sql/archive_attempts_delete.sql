DELETE FROM windlass_archive_attempts WHERE job_id = ?1
