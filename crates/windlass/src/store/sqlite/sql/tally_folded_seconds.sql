DELETE FROM windlass_tallies WHERE id > ?1 AND id <= ?2
