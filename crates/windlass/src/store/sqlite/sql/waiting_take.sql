-- waiting_take: the listed jobs of a lane no longer wait; they are between ?2, ?3 and ?4, ?5 in its order.
DELETE FROM windlass_waiting
WHERE lane = ?1 AND (due_at, id) >= (?2, ?3) AND (due_at, id) <= (?4, ?5) AND id IN (SELECT value FROM json_each(?6))
