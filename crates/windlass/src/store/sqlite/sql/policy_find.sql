SELECT id FROM windlass_policies WHERE line = ?1
