SELECT line FROM windlass_policies WHERE id = ?1
