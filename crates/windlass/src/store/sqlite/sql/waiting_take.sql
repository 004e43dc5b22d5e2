-- waiting_take: the jobs of lane ?1 up to ?2, ?3 in its order no longer wait.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3)
