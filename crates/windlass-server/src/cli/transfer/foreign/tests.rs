//! Sample lines in the form that each system writes them.

use super::*;
use serde_json::json;
use windlass_core::Priority;

fn read(system: System, value: &Value) -> Result<Foreign, String> {
    read_due(system, value, None)
}

fn read_due(system: System, value: &Value, due: Option<f64>) -> Result<Foreign, String> {
    system.read(&Dumped::parse(system, value.to_string(), due)?, &Catalogue::load(&[]))
}

fn summary(job: &Foreign) -> (&str, &str, &str, Option<u32>) {
    let queue = job.draft.queue.as_ref().map_or("default", QueueName::as_str);
    (queue, job.draft.kind.as_str(), &job.draft.payload, job.draft.retry.max_retries)
}

fn key(job: &Foreign) -> &str {
    &job.draft.idempotency.as_ref().unwrap().key
}

#[test]
fn a_row_of_pg_boss_keeps_its_time_and_the_retries_that_are_left() {
    let row = json!({
        "id": "0190b7a2-0000-7000-8000-000000000001", "name": "Welcome Email", "priority": 5, "data": { "to": "ann" },
        "state": "retry", "retry_limit": 5, "retry_count": 2, "retry_delay": 30, "retry_backoff": true,
        "start_after": "2026-11-17T15:59:10.5+00:00", "singleton_key": null,
    });
    let job = read(System::PgBoss, &row).unwrap();
    assert_eq!(summary(&job), ("welcome-email", "Welcome Email", r#"{"to":"ann"}"#, Some(2)));
    assert_eq!(job.draft.run_at, RunAt::At(Timestamp::parse("2026-11-17T15:59:10.500Z").unwrap()));
    assert_eq!(job.draft.priority, Priority::High);
    assert_eq!(key(&job), "pg-boss:0190b7a2-0000-7000-8000-000000000001");
    assert_eq!(job.notes, ["the queue `Welcome Email` is called `welcome-email` here"]);
}

#[test]
fn older_versions_of_pg_boss_name_their_columns_without_underscores() {
    let row = json!({
        "id": "1", "name": "email", "priority": 0, "data": null, "state": "created", "retrylimit": 2, "retrycount": 0,
        "retrydelay": 0, "retrybackoff": false, "startafter": "2026-11-17T15:59:10+00:00",
    });
    let job = read(System::PgBoss, &row).unwrap();
    assert_eq!(summary(&job), ("email", "email", "null", Some(2)));
}

#[test]
fn what_does_not_wait_in_pg_boss_is_not_taken() {
    for state in ["active", "completed", "failed", "cancelled"] {
        let row = json!({ "id": "1", "name": "email", "state": state });
        assert!(read(System::PgBoss, &row).is_err(), "{state}");
    }
    let own = json!({ "id": "1", "name": "__pgboss__send-it", "state": "created" });
    assert!(read(System::PgBoss, &own).unwrap_err().contains("pg-boss itself"));
    let bad = json!({ "id": "1", "name": "email", "state": "created", "start_after": "soon" });
    assert!(read(System::PgBoss, &bad).unwrap_err().contains("start_after"));
}

#[test]
fn a_row_of_graphile_worker_is_a_job_of_its_task() {
    let row = json!({
        "id": 42, "task_identifier": "send_email", "queue_name": "user:7", "payload": { "to": "bob" }, "priority": -1,
        "run_at": "2026-11-18T06:00:00+00:00", "attempts": 3, "max_attempts": 25, "locked_at": null, "key": "k",
    });
    let job = read(System::GraphileWorker, &row).unwrap();
    assert_eq!(summary(&job), ("user-7", "send_email", r#"{"to":"bob"}"#, Some(21)));
    assert_eq!((job.draft.priority, key(&job), job.notes.len()), (Priority::High, "graphile-worker:42", 3));
    let plain = json!({ "id": 1, "task_identifier": "t", "attempts": 0, "max_attempts": 1 });
    assert_eq!(summary(&read(System::GraphileWorker, &plain).unwrap()), ("default", "t", "{}", Some(0)));
    let locked = json!({ "id": 1, "task_identifier": "t", "locked_at": "2026-11-18T06:00:00+00:00" });
    assert!(read(System::GraphileWorker, &locked).unwrap_err().contains("runs there"));
    let over = json!({ "id": 1, "task_identifier": "t", "attempts": 25, "max_attempts": 25 });
    assert!(read(System::GraphileWorker, &over).unwrap_err().contains("used up"));
}

#[test]
fn an_item_of_sidekiq_is_due_at_its_score() {
    let item = json!({
        "class": "Reports::Daily", "args": [17, { "full": true }], "jid": "b4a577edbccf1d805744efa9", "queue": "low",
        "retry": 5, "retry_count": 1, "error_message": "timeout", "created_at": 1_700_000_000.5,
    });
    let job = read_due(System::Sidekiq, &item, Some(1_763_400_000.25)).unwrap();
    assert_eq!(summary(&job), ("low", "Reports::Daily", r#"[17,{"full":true}]"#, Some(3)));
    assert_eq!(job.draft.run_at, RunAt::At(Timestamp::from_millis(1_763_400_000_250)));
    assert_eq!(key(&job), "sidekiq:b4a577edbccf1d805744efa9");
    let wrapped = json!({ "class": "Sidekiq::ActiveJob::Wrapper", "wrapped": "WelcomeJob", "args": [], "jid": "j", "retry": true });
    assert_eq!(summary(&read(System::Sidekiq, &wrapped).unwrap()), ("default", "WelcomeJob", "[]", Some(25)));
    let never = json!({ "class": "A", "args": [], "jid": "j", "retry": false });
    assert_eq!(read(System::Sidekiq, &never).unwrap().draft.retry.max_retries, Some(0));
    assert!(read(System::Sidekiq, &json!({ "class": "A", "args": {}, "jid": "j" })).is_err());
    assert!(read(System::Sidekiq, &json!({ "class": "A", "args": [] })).unwrap_err().contains("no id"));
}

#[test]
fn a_job_of_bullmq_keeps_its_delay_and_backoff() {
    let item = json!({
        "queue": "mail", "id": "12", "name": "welcome", "data": { "to": "ann" }, "timestamp": 1_763_400_000_000_i64,
        "delay": 60_000, "attemptsMade": 1,
        "opts": { "attempts": 4, "backoff": { "type": "exponential", "delay": 500 }, "priority": 3 },
    });
    let job = read(System::Bullmq, &item).unwrap();
    assert_eq!(summary(&job), ("mail", "welcome", r#"{"to":"ann"}"#, Some(2)));
    assert_eq!(job.draft.run_at, RunAt::At(Timestamp::from_millis(1_763_400_060_000)));
    assert_eq!((job.draft.priority, key(&job)), (Priority::Low, "bullmq:mail:12"));
    let plain = json!({ "queue": "mail", "id": "13", "name": "w", "data": {}, "opts": {} });
    assert_eq!(read(System::Bullmq, &plain).unwrap().draft.retry.max_retries, Some(0), "no retries by default");
    for part in
        [json!({ "opts": { "repeat": { "pattern": "* * * * *" } } }), json!({ "parentKey": "bull:a:1", "opts": {} })]
    {
        let mut item = json!({ "queue": "mail", "id": "1", "name": "w", "data": {} });
        item.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        assert!(read(System::Bullmq, &item).is_err());
    }
}

#[test]
fn a_job_of_faktory_is_stored_as_if_it_had_been_pushed() {
    let item = json!({
        "jid": "aHTXtY9pWnsp", "queue": "default", "jobtype": "SendEmail", "args": [1], "retry": 10, "reserve_for": 600,
        "failure": { "retry_count": 2, "errtype": "Timeout", "next_at": "2026-11-18T06:00:00Z" },
    });
    let job = read_due(System::Faktory, &item, Some(1_763_400_000.0)).unwrap();
    assert_eq!(summary(&job), ("default", "SendEmail", item.to_string().as_str(), Some(7)));
    assert_eq!(
        (key(&job), job.draft.run_at),
        ("faktory:aHTXtY9pWnsp", RunAt::At(Timestamp::from_millis(1_763_400_000_000)))
    );
    assert!(read(System::Faktory, &json!({ "jid": "x", "args": [] })).unwrap_err().contains("jobtype"));
}

#[test]
fn times_of_sidekiq_are_seconds_or_milliseconds() {
    for enqueued_at in [json!(1_763_400_000.25), json!(1_763_400_000_250_i64)] {
        let item = json!({ "class": "A", "args": [], "jid": "j", "enqueued_at": enqueued_at });
        let job = read(System::Sidekiq, &item).unwrap();
        assert_eq!(job.draft.run_at, RunAt::At(Timestamp::from_millis(1_763_400_000_250)), "{enqueued_at}");
    }
}

#[test]
fn a_queue_of_faktory_gets_a_name_that_can_be_used() {
    let item = json!({ "jid": "aHTXtY9pWnsp", "queue": "Critical", "jobtype": "A", "args": [1] });
    let job = read(System::Faktory, &item).unwrap();
    assert_eq!(
        summary(&job),
        ("critical", "A", r#"{"args":[1],"jid":"aHTXtY9pWnsp","jobtype":"A","queue":"critical"}"#, Some(25))
    );
    assert_eq!(job.notes, ["the queue `Critical` is called `critical` here"]);
}

#[test]
fn a_dump_of_bullmq_without_times_of_attempts_is_noted() {
    let item = json!({
        "queue": "mail", "id": "1", "name": "w", "data": {}, "timestamp": 1_763_400_000_000_i64, "delay": 60_000,
        "attemptsMade": 1, "opts": { "attempts": 4 },
    });
    let job = read(System::Bullmq, &item).unwrap();
    assert!(job.notes[0].contains("too early"), "{:?}", job.notes);
    let mut complete = item;
    complete["processedOn"] = json!(1_763_400_100_000_i64);
    let job = read(System::Bullmq, &complete).unwrap();
    assert_eq!((job.draft.run_at, job.notes.len()), (RunAt::At(Timestamp::from_millis(1_763_400_160_000)), 0));
}

#[test]
fn numbers_keep_their_digits_and_those_above_every_type_are_refused() {
    let read = |number: &str| {
        let line = format!(r#"{{"id":1,"task_identifier":"t","payload":{{"n":{number}}}}}"#);
        let dumped = Dumped::parse(System::GraphileWorker, line, None)?;
        System::GraphileWorker.read(&dumped, &Catalogue::load(&[]))
    };
    let job = read("12345678901234567890123").unwrap();
    assert_eq!(&*job.draft.payload, r#"{"n":12345678901234567890123}"#);
    assert!(read("1e400").unwrap_err().contains("1.8e308"));
}
