-- The SQL function that enqueues in the caller's own transaction, from any language and driver. It registers a new
-- queue at the end of that transaction, so that nobody waits for it.

-- Jobs of queues that did not exist when the jobs were enqueued. Only open transactions have rows here.
CREATE TABLE {schema}.unregistered (
    job_id bigint PRIMARY KEY,
    tenant text NOT NULL,
    queue  text NOT NULL,
    kind   text NOT NULL,
    at     bigint NOT NULL
);

-- Registers the queues of this transaction's jobs, as the last thing before its commit: a queue's row that is not yet
-- committed blocks everyone who uses the queue for the first time. All at once and in order, so that transactions
-- cannot deadlock.
CREATE FUNCTION {schema}.register_queues() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.unregistered u WHERE u.job_id = NEW.job_id) THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.queues (tenant, name, executor, created_at)
    SELECT u.tenant, u.queue, 'worker', min(u.at) FROM {schema}.unregistered u GROUP BY u.tenant, u.queue ORDER BY u.tenant, u.queue
    ON CONFLICT (tenant, name, executor) DO NOTHING;
    UPDATE {schema}.jobs j SET queue_id = q.id
    FROM {schema}.unregistered u
    JOIN {schema}.queues q ON q.tenant = u.tenant AND q.name = u.queue AND q.executor = 'worker'
    WHERE j.id = u.job_id;
    UPDATE {schema}.waiting w SET queue_id = j.queue_id
    FROM {schema}.unregistered u JOIN {schema}.jobs j ON j.id = u.job_id
    WHERE w.id = u.job_id;
    INSERT INTO {schema}.tally_deltas (at, queue_id, kind, enqueued)
    SELECT max(u.at), q.id, u.kind, count(*)
    FROM {schema}.unregistered u
    JOIN {schema}.queues q ON q.tenant = u.tenant AND q.name = u.queue AND q.executor = 'worker'
    GROUP BY q.id, u.kind;
    IF EXISTS (SELECT FROM {schema}.unregistered u JOIN {schema}.jobs j ON j.id = u.job_id WHERE j.queue_id = 0) THEN
        -- Another transaction registered the queue, and the isolation level of this one hides it.
        RAISE EXCEPTION 'a queue was registered by another transaction: try again' USING ERRCODE = '40001';
    END IF;
    DELETE FROM {schema}.unregistered;
    RETURN NULL;
END
$function$;

CREATE CONSTRAINT TRIGGER register_queues AFTER INSERT ON {schema}.unregistered
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.register_queues();

-- Makes waiting workers look for work now. Call it after the commit that enqueued, not before: commits that notify wait
-- for each other.
CREATE FUNCTION {schema}.wake() RETURNS void LANGUAGE sql AS $function$ SELECT pg_notify('{channel}', '') $function$;

-- The job's policy is fixed when it is first claimed. Workers find the job by polling, or at once if wake() is called
-- after the commit: a NOTIFY here would make the caller's commits wait for each other.
CREATE FUNCTION {schema}.enqueue(
    kind            text,
    payload         text DEFAULT 'null',
    queue           text DEFAULT 'default',
    tenant          text DEFAULT 'default',
    priority        integer DEFAULT 0,
    run_at          timestamptz DEFAULT NULL,
    delay           interval DEFAULT NULL,
    retry           text DEFAULT NULL,
    delivery        text DEFAULT 'AT_LEAST_ONCE',
    timeout         interval DEFAULT NULL,
    start_by        timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    key_window      interval DEFAULT interval '24 hours',
    traceparent     text DEFAULT NULL,
    limit_key       text DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql AS $function$
DECLARE
    now_ms   bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    due_ms   bigint;
    queue_no bigint;
    known    record;
    job_id   bigint;
BEGIN
    -- Control characters, characters that cannot be seen, and spaces at either end, as the program refuses them.
    IF enqueue.kind IS NULL OR char_length(enqueue.kind) NOT BETWEEN 1 AND 128
       OR enqueue.kind ~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]'
       OR enqueue.kind ~ '^[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]|[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]$' THEN
        RAISE EXCEPTION 'kind `%` is not a name; names have 1 to 128 printable characters and no space at either end', left(enqueue.kind, 80)
            USING ERRCODE = '22023';
    END IF;
    IF enqueue.queue IS NULL OR enqueue.queue !~ '^[a-z0-9][a-z0-9._-]{0,63}$' THEN
        RAISE EXCEPTION 'queue `%` is not a name; names match [a-z0-9][a-z0-9._-]{0,63}', left(enqueue.queue, 80) USING ERRCODE = '22023';
    END IF;
    IF enqueue.tenant IS NULL OR enqueue.tenant !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' THEN
        RAISE EXCEPTION 'tenant `%` is not a name; names match [A-Za-z0-9][A-Za-z0-9._-]{0,63}', left(enqueue.tenant, 80) USING ERRCODE = '22023';
    END IF;
    IF enqueue.payload IS NULL THEN
        RAISE EXCEPTION 'payload is NULL; pass JSON, such as ''{}''' USING ERRCODE = '22023';
    END IF;
    IF octet_length(enqueue.payload) > 262144 THEN
        RAISE EXCEPTION 'payload is % bytes; the most is 262144', octet_length(enqueue.payload) USING ERRCODE = '22023';
    END IF;
    -- Raises an error if it is not JSON.
    PERFORM enqueue.payload::json;
    IF enqueue.priority IS NULL OR enqueue.priority NOT BETWEEN -2 AND 2 THEN
        RAISE EXCEPTION 'priority % is not one of -2..2', enqueue.priority USING ERRCODE = '22023';
    END IF;
    IF enqueue.delivery IS NULL OR enqueue.delivery NOT IN ('AT_LEAST_ONCE', 'AT_MOST_ONCE') THEN
        RAISE EXCEPTION 'delivery `%` is neither AT_LEAST_ONCE nor AT_MOST_ONCE', enqueue.delivery USING ERRCODE = '22023';
    END IF;
    IF enqueue.run_at IS NOT NULL AND enqueue.delay IS NOT NULL THEN
        RAISE EXCEPTION 'give run_at or delay, not both' USING ERRCODE = '22023';
    END IF;
    IF enqueue.retry IS NOT NULL AND split_part(enqueue.retry, ':', 1) <> 'steps'
       AND split_part(enqueue.retry, ':', 1) <> ALL ('{presets}'::text[])
       AND NOT EXISTS (SELECT FROM {schema}.settings s WHERE s.scope = 'policy' AND s.name = split_part(enqueue.retry, ':', 1)) THEN
        RAISE EXCEPTION 'retry `%` names no policy; write a preset or a line such as exponential:base=1s,retries=5', left(enqueue.retry, 80)
            USING ERRCODE = '22023';
    END IF;
    IF enqueue.limit_key IS NOT NULL AND (enqueue.limit_key = '' OR char_length(enqueue.limit_key) > 128 OR enqueue.limit_key ~ '[[:cntrl:]]') THEN
        RAISE EXCEPTION 'limit_key must be 1 to 128 characters without control characters' USING ERRCODE = '22023';
    END IF;
    due_ms := CASE
        WHEN enqueue.run_at IS NOT NULL THEN (extract(epoch FROM enqueue.run_at) * 1000)::bigint
        WHEN enqueue.delay IS NOT NULL THEN now_ms + (extract(epoch FROM enqueue.delay) * 1000)::bigint
        ELSE now_ms END;

    IF enqueue.idempotency_key IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}' || ' ' || enqueue.tenant || ' ' || enqueue.idempotency_key, 0));
        SELECT k.job_id, j.kind, j.payload INTO known
        FROM {schema}.keys k LEFT JOIN {schema}.jobs j ON j.id = k.job_id
        WHERE k.tenant = enqueue.tenant AND k.key = enqueue.idempotency_key
          AND (k.expires_at > now_ms OR (k.expires_at IS NULL AND j.id IS NOT NULL AND NOT EXISTS (
              SELECT FROM {schema}.attempts o WHERE o.job_id = k.job_id AND o.state IS NOT NULL)));
        IF FOUND THEN
            IF known.kind <> enqueue.kind OR known.payload::jsonb <> enqueue.payload::jsonb THEN
                RAISE EXCEPTION 'idempotency key `%` stands for job %, with another kind or payload', enqueue.idempotency_key, known.job_id
                    USING ERRCODE = '23505';
            END IF;
            RETURN known.job_id;
        END IF;
    END IF;

    SELECT q.id INTO queue_no FROM {schema}.queues q
    WHERE q.tenant = enqueue.tenant AND q.name = enqueue.queue AND q.executor = 'worker';
    -- No queue until the commit: an open transaction must not hold the row of a new one.
    queue_no := coalesce(queue_no, 0);

    INSERT INTO {schema}.jobs AS j (queue_id, due_at, created_at, start_by, timeout_ms, priority, at_most_once, kind, payload,
                               idempotency_key, traceparent, limit_key, retry_line)
    VALUES (queue_no, due_ms, now_ms, (extract(epoch FROM enqueue.start_by) * 1000)::bigint,
            (extract(epoch FROM enqueue.timeout) * 1000)::bigint, enqueue.priority, enqueue.delivery = 'AT_MOST_ONCE',
            enqueue.kind, enqueue.payload, enqueue.idempotency_key, enqueue.traceparent, enqueue.limit_key,
            coalesce(enqueue.retry, ''))
    RETURNING j.id INTO job_id;
    INSERT INTO {schema}.waiting (id, queue_id, due_at, priority, at_most_once, start_by)
    VALUES (job_id, queue_no, due_ms, enqueue.priority, enqueue.delivery = 'AT_MOST_ONCE',
            (extract(epoch FROM enqueue.start_by) * 1000)::bigint);
    IF queue_no = 0 THEN
        INSERT INTO {schema}.unregistered (job_id, tenant, queue, kind, at) VALUES (job_id, enqueue.tenant, enqueue.queue, enqueue.kind, now_ms);
    ELSE
        INSERT INTO {schema}.tally_deltas (at, queue_id, kind, enqueued) VALUES (now_ms, queue_no, enqueue.kind, 1);
    END IF;

    IF enqueue.idempotency_key IS NOT NULL THEN
        INSERT INTO {schema}.keys AS k (tenant, key, job_id, expires_at)
        VALUES (enqueue.tenant, enqueue.idempotency_key, job_id,
                now_ms + (extract(epoch FROM enqueue.key_window) * 1000)::bigint)
        ON CONFLICT ON CONSTRAINT keys_pkey DO UPDATE
        SET job_id = excluded.job_id, expires_at = excluded.expires_at;
    END IF;
    RETURN job_id;
END
$function$;

-- The same for payloads of type json and jsonb. A literal, or a parameter without a type, is taken as text: only that
-- function has a default for the payload, so no call is ambiguous.
CREATE FUNCTION {schema}.enqueue(
    kind            text,
    payload         json,
    queue           text DEFAULT 'default',
    tenant          text DEFAULT 'default',
    priority        integer DEFAULT 0,
    run_at          timestamptz DEFAULT NULL,
    delay           interval DEFAULT NULL,
    retry           text DEFAULT NULL,
    delivery        text DEFAULT 'AT_LEAST_ONCE',
    timeout         interval DEFAULT NULL,
    start_by        timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    key_window      interval DEFAULT interval '24 hours',
    traceparent     text DEFAULT NULL,
    limit_key       text DEFAULT NULL
) RETURNS bigint LANGUAGE sql AS $function$
    SELECT {schema}.enqueue($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
$function$;
CREATE FUNCTION {schema}.enqueue(
    kind            text,
    payload         jsonb,
    queue           text DEFAULT 'default',
    tenant          text DEFAULT 'default',
    priority        integer DEFAULT 0,
    run_at          timestamptz DEFAULT NULL,
    delay           interval DEFAULT NULL,
    retry           text DEFAULT NULL,
    delivery        text DEFAULT 'AT_LEAST_ONCE',
    timeout         interval DEFAULT NULL,
    start_by        timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    key_window      interval DEFAULT interval '24 hours',
    traceparent     text DEFAULT NULL,
    limit_key       text DEFAULT NULL
) RETURNS bigint LANGUAGE sql AS $function$
    SELECT {schema}.enqueue($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
$function$;
