-- tally_fold_bound: the last of the oldest ?2 deltas made before ?1.
SELECT max(id) FROM (SELECT id FROM windlass_tallies WHERE at < ?1 ORDER BY id LIMIT ?2)
