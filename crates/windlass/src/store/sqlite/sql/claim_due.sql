-- claim_due: waiting jobs of a lane that are due, first things first.
SELECT id, due_at FROM windlass_waiting WHERE lane = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3
