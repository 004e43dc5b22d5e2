SELECT error_class, error FROM windlass_jobs WHERE id = ?1
