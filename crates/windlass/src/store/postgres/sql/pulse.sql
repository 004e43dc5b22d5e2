-- pulse: a real write, and the server's time.
INSERT INTO {schema}.pulse AS p (only, beat_at) VALUES (true, {now})
ON CONFLICT (only) DO UPDATE SET beat_at = excluded.beat_at
RETURNING beat_at
