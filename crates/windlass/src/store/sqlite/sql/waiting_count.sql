-- waiting_count: how many wait in a lane between ?2, ?3 and ?4, ?5 in its order.
SELECT count(*) FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) >= (?2, ?3) AND (due_at, id) <= (?4, ?5)
