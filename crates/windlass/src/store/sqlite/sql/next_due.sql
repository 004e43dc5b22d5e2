-- next_due: the first moment after ?2 at which a waiting job of queue ?1 falls due.
WITH lanes (place) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19))
SELECT min((SELECT due_at FROM windlass_waiting WHERE lane = ?1 * 20 + place AND due_at > ?2 ORDER BY due_at LIMIT 1))
FROM lanes
