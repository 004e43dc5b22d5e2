SELECT coalesce(max(id), 0) FROM windlass_tallies
