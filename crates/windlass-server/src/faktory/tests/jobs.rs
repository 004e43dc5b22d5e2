use super::world::World;
use serde_json::{Value, json};
use windlass_core::State;

fn push(fields: &Value) -> String {
    let mut job = json!({"jid": "a1", "jobtype": "email", "args": [1, "two"]});
    job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("PUSH {job}")
}

#[tokio::test]
async fn a_pushed_job_is_fetched_with_every_field_and_acknowledged() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    let text = r#"{"jid":"a1","jobtype":"email","args":[1.0, 12345678901234567890123, {"b": null}],"reserve_for":600,"custom":{"note":"x"},"mine":[true]}"#;
    assert_eq!(producer.call(&format!("PUSH {text}")).await, "+OK");
    worker.send("FETCH email default").await;
    let raw = worker.reply().await;
    assert!(raw.contains(r#""args":[1.0, 12345678901234567890123, {"b": null}]"#), "{raw}");
    let job: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!((&job["jid"], &job["queue"], &job["mine"]), (&json!("a1"), &json!("default"), &json!([true])));
    assert_eq!((&job["reserve_for"], &job["custom"]["note"]), (&json!(600), &json!("x")));
    assert!(job["created_at"].is_string() && job["enqueued_at"].is_string() && job.get("failure").is_none());
    assert_eq!(w.only().await.state, State::Running);
    assert_eq!(worker.call(r#"ACK {"jid":"a1"}"#).await, "+OK");
    let done = w.only().await;
    assert_eq!((done.state, done.kind.as_str()), (State::Succeeded, "email"));
    assert_eq!(done.policy.max_attempts(), 26);
    // A client that lost the answer says it again.
    assert_eq!(worker.call(r#"ACK {"jid":"a1"}"#).await, "+OK");
}

#[tokio::test]
async fn an_empty_fetch_answers_nothing_after_two_seconds() {
    let w = World::new();
    let began = w.windlass.clock().now();
    let mut worker = w.worker("w-1234567").await;
    assert_eq!(w.fetch(&mut worker, "default").await, None);
    let waited = w.windlass.clock().now().since(began).get();
    assert!((1_900..3_000).contains(&waited), "{waited}");
}

#[tokio::test]
async fn queues_are_asked_in_the_order_given() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    for (jid, queue) in [("a", "low"), ("b", "high"), ("c", "high")] {
        assert_eq!(producer.call(&push(&json!({"jid": jid, "queue": queue}))).await, "+OK");
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(w.fetch(&mut worker, "high low").await.unwrap()["jid"].as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["b", "c", "a"]);
}

#[tokio::test]
async fn a_failure_is_recorded_with_class_message_and_trace_and_retried() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    let custom = json!({"custom": {"policy": "fixed:base=1s,jitter=none", "limitKey": "customer-7"}});
    producer.call(&push(&custom)).await;
    w.fetch(&mut worker, "default").await.unwrap();
    assert_eq!(w.only().await.limit_key.as_deref(), Some("customer-7"));
    let fail = r#"FAIL {"jid":"a1","errtype":"KeyError","message":"no such key","backtrace":["a.py:1","b.py:2"]}"#;
    assert_eq!(worker.call(fail).await, "+OK");
    let job = w.only().await;
    assert_eq!((job.state, job.error_class.as_deref()), (State::Retrying, Some("KeyError")));
    let attempts = w.windlass.jobs().history(job.id).await.unwrap();
    assert_eq!(attempts[0].trace.as_deref(), Some("a.py:1\nb.py:2"));
    assert_eq!(attempts[0].worker, "faktory:w-1234567");
    w.advance(1);
    let again = w.fetch(&mut worker, "default").await.unwrap();
    let failure = &again["failure"];
    assert_eq!((&failure["retry_count"], &failure["errtype"]), (&json!(0), &json!("KeyError")));
    assert_eq!(failure["remaining"], 3, "as many as the policy it names");
    assert_eq!((&failure["message"], &failure["backtrace"]), (&json!("no such key"), &json!(["a.py:1", "b.py:2"])));
}

#[tokio::test]
async fn retry_says_how_often_and_what_becomes_of_the_job() {
    for (retry, dead) in [(json!(0), false), (json!(-1), true)] {
        let w = World::new();
        let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
        producer.call(&push(&json!({"retry": retry}))).await;
        w.fetch(&mut worker, "default").await.unwrap();
        assert_eq!(worker.call(r#"FAIL {"jid":"a1"}"#).await, "+OK");
        let job = w.only().await;
        assert_eq!((job.state, job.discarded_at.is_none()), (State::Failed, dead), "retry {retry}");
    }
}

#[tokio::test]
async fn a_job_waits_for_its_time_and_an_empty_time_means_now() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    producer.call(&push(&json!({"at": "2026-01-01T13:00:00+00:00"}))).await;
    producer.call(&push(&json!({"jid": "b", "at": ""}))).await;
    assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], "b");
    assert_eq!(w.fetch(&mut worker, "default").await, None);
    w.advance(3600);
    assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], "a1");
}

#[tokio::test]
async fn a_reservation_lasts_as_long_as_the_job_says_and_nobody_renews_it() {
    for (reserve_for, expected) in [(json!(null), 1_800), (json!(120), 120), (json!(5), 60)] {
        let w = World::new();
        let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
        producer.call(&push(&json!({"reserve_for": reserve_for, "retry": 3}))).await;
        w.fetch(&mut worker, "default").await.unwrap();
        w.advance(expected - 2);
        w.reap().await;
        assert_eq!(w.only().await.state, State::Running, "{reserve_for}");
        w.advance(3);
        w.reap().await;
        assert_eq!(w.only().await.state, State::Retrying, "{reserve_for}");
        let late = worker.call(r#"ACK {"jid":"a1"}"#).await;
        assert!(late.starts_with("-ERR") && late.contains("has ended"), "{late}");
    }
}

#[tokio::test]
async fn a_jid_is_unique_while_its_job_is_live_and_free_again_afterwards() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    assert_eq!(producer.call(&push(&json!({}))).await, "+OK");
    assert_eq!(producer.call(&push(&json!({}))).await, "+OK");
    let other = producer.call(&push(&json!({"args": [2]}))).await;
    assert!(other.starts_with("-ERR NOTUNIQUE"), "{other}");
    assert_eq!(w.only().await.state, State::Queued);
    w.advance(100 * 86_400);
    assert!(producer.call(&push(&json!({"args": [2]}))).await.starts_with("-ERR NOTUNIQUE"));
    w.fetch(&mut worker, "default").await.unwrap();
    worker.call(r#"ACK {"jid":"a1"}"#).await;
    assert_eq!(producer.call(&push(&json!({"args": [2]}))).await, "+OK");
}

#[tokio::test]
async fn the_same_work_is_stored_once_within_unique_for() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    let unique = |jid: &str| push(&json!({"jid": jid, "custom": {"unique_for": 60}}));
    assert_eq!(producer.call(&unique("a")).await, "+OK");
    assert!(producer.call(&unique("b")).await.starts_with("-ERR NOTUNIQUE"));
    assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], "a");
    // After a restart the jid is found too.
    let after = w.restarted();
    let mut worker = after.worker("w-7654321").await;
    assert_eq!(worker.call(r#"ACK {"jid":"a"}"#).await, "+OK");
    assert_eq!(w.only().await.state, State::Succeeded);
    w.advance(61);
    assert_eq!(producer.call(&unique("c")).await, "+OK");
}

#[tokio::test]
async fn results_name_a_jid_on_any_connection_and_after_a_restart() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    for (jid, tenant) in [("a", "default"), ("b", "acme"), ("c", "default")] {
        producer.call(&push(&json!({"jid": jid, "custom": {"tenant": tenant}, "queue": jid}))).await;
    }
    for queue in ["a", "b", "c"] {
        assert_eq!(w.fetch(&mut worker, queue).await.unwrap()["jid"], queue);
    }
    assert_eq!(producer.call(r#"ACK {"jid":"a"}"#).await, "+OK");
    let after = w.restarted();
    let mut other = after.producer().await;
    assert_eq!(other.call(r#"ACK {"jid":"b"}"#).await, "+OK");
    assert_eq!(other.call(r#"FAIL {"jid":"c","message":"no"}"#).await, "+OK");
    let jobs = w.windlass.jobs().list(&Default::default(), windlass::client::Page::oldest(10)).await.unwrap();
    let states: Vec<State> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [State::Succeeded, State::Succeeded, State::Retrying]);
}

#[tokio::test]
async fn a_worker_that_lost_its_reservation_does_not_end_the_attempt_of_another() {
    let w = World::new();
    let (mut producer, mut slow, mut other) =
        (w.producer().await, w.worker("w-slow-12").await, w.worker("w-other-1").await);
    producer.call(&push(&json!({"reserve_for": 60, "custom": {"policy": "fixed:base=1s"}}))).await;
    w.fetch(&mut slow, "default").await.unwrap();
    w.advance(62);
    w.reap().await;
    w.advance(10);
    w.fetch(&mut other, "default").await.unwrap();
    assert!(slow.call(r#"ACK {"jid":"a1"}"#).await.starts_with("-ERR"));
    assert_eq!(w.only().await.state, State::Running);
    assert_eq!(other.call(r#"ACK {"jid":"a1"}"#).await, "+OK");
    assert_eq!(w.only().await.state, State::Succeeded);
}

#[tokio::test]
async fn a_job_that_was_enqueued_another_way_is_run_too() {
    let w = World::new();
    w.windlass.enqueue_kind("report", &json!({"year": 2026})).await.unwrap();
    let mut worker = w.worker("w-1234567").await;
    let job = w.fetch(&mut worker, "default").await.unwrap();
    assert_eq!((&job["jobtype"], &job["args"]), (&json!("report"), &json!([{"year": 2026}])));
    let after = w.restarted();
    let mut other = after.worker("w-1234567").await;
    assert_eq!(other.call(&format!("ACK {}", json!({"jid": job["jid"]}))).await, "+OK");
    assert_eq!(w.only().await.state, State::Succeeded);
}

#[tokio::test]
async fn a_job_fetched_by_a_client_that_is_gone_is_given_back() {
    let w = World::new();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    worker.send("FETCH default").await;
    drop(worker);
    producer.call(&push(&json!({}))).await;
    let mut other = w.worker("w-other-1").await;
    assert_eq!(w.fetch(&mut other, "default").await.unwrap()["jid"], "a1");
}
