INSERT INTO windlass_waiting (lane, due_at, id) VALUES (?1, ?2, ?3)
