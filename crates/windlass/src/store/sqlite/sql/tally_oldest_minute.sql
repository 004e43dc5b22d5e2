SELECT min(at) FROM windlass_tally_sums WHERE span = 60000 AND at < ?1
