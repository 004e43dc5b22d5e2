-- tally_turn: one transaction at a time folds tallies. Waits for its turn.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} tallies', 0))
