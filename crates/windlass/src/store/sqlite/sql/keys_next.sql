SELECT max(id) FROM (SELECT id FROM windlass_keys WHERE id > ?1 ORDER BY id LIMIT ?2)
