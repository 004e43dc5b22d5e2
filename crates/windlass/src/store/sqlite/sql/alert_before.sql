SELECT status, incident FROM windlass_alerts WHERE rule = ?1 AND subject = ?2
