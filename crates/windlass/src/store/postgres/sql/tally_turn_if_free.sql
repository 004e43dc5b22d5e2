-- tally_turn_if_free: the same without waiting: whoever has it does the work.
SELECT pg_try_advisory_xact_lock(hashtextextended('{schema} tallies', 0))
