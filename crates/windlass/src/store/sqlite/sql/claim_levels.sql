-- claim_levels: which lanes of queue ?1 have due jobs, in the order they are served. Twenty index probes, however many jobs
-- wait for later.
WITH lanes (place) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19))
SELECT place FROM lanes
WHERE EXISTS (SELECT 1 FROM windlass_waiting WHERE lane = ?1 * 20 + place AND due_at <= ?2)
