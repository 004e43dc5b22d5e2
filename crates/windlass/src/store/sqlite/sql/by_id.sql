WHERE id = ?1
