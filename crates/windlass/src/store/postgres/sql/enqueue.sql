-- enqueue: store new jobs. Ids grow in the order of the arrays.
WITH clock AS MATERIALIZED (SELECT {now} AS now)
INSERT INTO {schema}.jobs (queue_id, due_at, created_at, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                           at_most_once, state, kind, payload, idempotency_key, http, webhook, traceparent)
SELECT i.queue_id, coalesce(i.run_at, clock.now + i.delay), clock.now, i.policy_id, i.start_by, i.timeout_ms, i.schedule_id,
       i.parent_id, i.priority, i.at_most_once, 'queued', i.kind, i.payload, i.idempotency_key, i.http, i.webhook, i.traceparent
FROM clock,
     unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::smallint[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[])
     WITH ORDINALITY AS i (queue_id, run_at, delay, policy_id, start_by, timeout_ms, schedule_id, parent_id, priority,
                           at_most_once, kind, payload, idempotency_key, http, webhook, traceparent, place)
ORDER BY i.place
RETURNING id, created_at, due_at
