-- waiting_take_listed: the same for those listed alone.
DELETE FROM windlass_waiting WHERE lane = ?1 AND (due_at, id) <= (?2, ?3) AND id IN (SELECT value FROM json_each(?4))
