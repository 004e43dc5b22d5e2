-- claim_due_in_time: the same without those that should have started before now.
SELECT w.id, w.due_at
FROM windlass_waiting w
CROSS JOIN windlass_live_jobs j ON j.id = w.id
WHERE w.lane = ?1 AND w.due_at <= ?2 AND (j.start_by IS NULL OR j.start_by > ?2 OR j.first_attempt_at IS NOT NULL)
ORDER BY w.due_at, w.id
LIMIT ?3
