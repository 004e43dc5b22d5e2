SELECT at, by, action, count, detail FROM windlass_audits ORDER BY id DESC LIMIT ?1
