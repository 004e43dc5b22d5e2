UPDATE windlass_archive SET discarded_at = ?2, discard_reason = ?3 WHERE id = ?1 AND discarded_at IS NULL
