INSERT INTO windlass_audits (at, by, action, count, detail) VALUES (?1, ?2, ?3, ?4, ?5)
