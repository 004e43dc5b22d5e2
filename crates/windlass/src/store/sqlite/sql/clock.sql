-- The file's time, which its users agree on.

-- name: clock
SELECT boot_id, ahead_ms FROM windlass_clock WHERE one = 1

-- name: clock_start
INSERT INTO windlass_clock (one, boot_id, ahead_ms) VALUES (1, ?1, ?2)
ON CONFLICT (one) DO UPDATE SET boot_id = excluded.boot_id, ahead_ms = excluded.ahead_ms

-- name: clock_set
UPDATE windlass_clock SET ahead_ms = ?1 WHERE one = 1

-- name: leases_restart
UPDATE windlass_leases SET ends_at_boot = ?1 + length_ms
