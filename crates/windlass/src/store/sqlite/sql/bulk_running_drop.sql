DELETE FROM windlass_running WHERE id IN (SELECT value FROM json_each(?1))
