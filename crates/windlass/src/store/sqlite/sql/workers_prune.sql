DELETE FROM windlass_workers WHERE seen_at < ?1
