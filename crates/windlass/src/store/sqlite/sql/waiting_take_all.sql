DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) >= (?2, ?3) AND (due_at, id) <= (?4, ?5)
