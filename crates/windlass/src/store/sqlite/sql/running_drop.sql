DELETE FROM windlass_running WHERE id = ?1
