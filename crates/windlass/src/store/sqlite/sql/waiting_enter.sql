-- waiting_enter: a job waits, as its row says.
INSERT INTO windlass_waiting (lane, due_at, id) SELECT lane, due_at, id FROM windlass_live_jobs WHERE id = ?1
