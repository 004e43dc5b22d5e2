DELETE FROM windlass_tallies WHERE at < ?1 AND id <= ?2
