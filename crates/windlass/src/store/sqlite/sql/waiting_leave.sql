-- waiting_leave: a job no longer waits, or not as its row still says.
DELETE FROM windlass_waiting WHERE (lane, due_at, id) = (SELECT lane, due_at, id FROM windlass_live_jobs WHERE id = ?1)
