INSERT INTO windlass_policies (line) VALUES (?1)
