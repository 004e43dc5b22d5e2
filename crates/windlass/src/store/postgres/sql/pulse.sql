-- pulse: a real write, and the server's time.
INSERT INTO {schema}.pulse AS p (one, beat_at) VALUES (true, {now})
ON CONFLICT (one) DO UPDATE SET beat_at = excluded.beat_at
RETURNING beat_at
