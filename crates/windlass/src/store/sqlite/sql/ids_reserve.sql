-- ids_reserve: the last of ?1 fresh ids.
UPDATE windlass_sequence SET last = last + ?1 WHERE only = 1 RETURNING last
