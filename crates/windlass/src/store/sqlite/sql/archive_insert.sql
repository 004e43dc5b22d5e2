-- archive_insert: values, not a SELECT from jobs: for that, SQLite would journal the pages of every statement.
INSERT INTO windlass_archive (id, queue_id, priority, once, due_at, attempt, claimed_at, first_attempt_at, replays, previous_delay, cancel_requested,
    created_at, policy_id, kind, start_by, timeout, idempotency_key, schedule_id, parent_id, traceparent, http, webhook, payload,
    error_class, error, state, failures, crashes, finished_at, reason, fingerprint, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)
