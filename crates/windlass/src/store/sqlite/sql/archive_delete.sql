DELETE FROM windlass_archive WHERE id = ?1
