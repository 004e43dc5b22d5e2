use super::world::World;
use crate::faktory::Signal;
use crate::faktory::hello::{ITERATIONS, hash};
use serde_json::{Value, json};
use windlass::client::JobFilter;
use windlass_core::State;

async fn states(w: &World) -> Vec<State> {
    let jobs = w.windlass.jobs().list(&JobFilter::default(), windlass::client::Page::oldest(100)).await.unwrap();
    jobs.iter().map(|job| job.state).collect()
}

#[tokio::test]
async fn the_greeting_has_a_salt_only_with_a_password() {
    let w = World::new();
    let (mut client, greeting) = w.greeted().await;
    assert_eq!(greeting, r#"+HI {"v":2}"#);
    // Old clients say no version.
    assert_eq!(client.call("HELLO {}").await, "+OK");
    let w = World::with(Some("secret"), false);
    for (iterations, password, accepted) in
        [(ITERATIONS, "secret", true), (1, "secret", true), (ITERATIONS, "wrong", false), (0, "", false)]
    {
        let (mut client, greeting) = w.greeted().await;
        let hi: Value = serde_json::from_str(greeting.split(' ').nth(1).unwrap()).unwrap();
        assert_eq!(hi["i"], ITERATIONS);
        let pwdhash = hash(password, hi["s"].as_str().unwrap(), iterations);
        let answer = client.call(&format!("HELLO {}", json!({"v": 2, "pwdhash": pwdhash}))).await;
        assert_eq!(answer == "+OK", accepted, "{password} {iterations}: {answer}");
        if !accepted {
            assert!(answer.contains("invalid password") && client.is_closed().await);
        }
    }
    let (mut client, _) = w.greeted().await;
    assert!(client.call(r#"PUSH {"jid":"a"}"#).await.starts_with("-ERR the first command must be HELLO"));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_worker_learns_from_its_heartbeat_that_it_should_stop() {
    let w = World::new();
    let mut worker = w.worker("w-1234567").await;
    let now = w.windlass.clock().now();
    assert_eq!(worker.call(r#"BEAT {"wid":"w-1234567","rss_kb":1}"#).await, "+OK");
    assert!(w.workers.signal("w-1234567", Signal::Quiet, now));
    assert_eq!(worker.call(r#"BEAT {"wid":"w-1234567"}"#).await, r#"{"state":"quiet"}"#);
    assert!(w.workers.signal("w-1234567", Signal::Terminate, now));
    assert_eq!(worker.call(r#"BEAT {"wid":"w-1234567"}"#).await, r#"{"state":"terminate"}"#);
    assert!(!w.workers.signal("nobody", Signal::Quiet, now));
    let listed = w.workers.list(now);
    assert_eq!((listed.len(), listed[0].labels.as_slice()), (1, &["rust".to_owned()][..]));
    w.advance(61);
    assert!(w.workers.list(w.windlass.clock().now()).is_empty());
}

#[tokio::test]
async fn many_jobs_are_pushed_at_once_and_the_wrong_ones_are_named() {
    let w = World::new();
    let mut client = w.producer().await;
    let jobs = json!([
        {"jid": "a", "jobtype": "email", "args": []},
        {"jid": "b", "jobtype": "", "args": []},
        {"jid": "c", "jobtype": "email"},
        {"jid": "d", "jobtype": "email", "args": [], "queue": "No Queue"},
        {"jid": "e", "jobtype": "email", "args": [], "at": "tomorrow"},
        {"jid": "f", "jobtype": "email", "args": [], "custom": {"policy": "nothing"}},
    ]);
    let answer: Value = serde_json::from_str(&client.call(&format!("PUSHB {jobs}")).await).unwrap();
    let refused: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(refused, ["b", "c", "d", "e", "f"]);
    assert_eq!(states(&w).await, [State::Queued]);
    assert_eq!(client.call(r#"PUSHB [{"jid":"g","jobtype":"email","args":[]}]"#).await, "{}");
}

#[tokio::test]
async fn queues_are_paused_resumed_emptied_and_listed() {
    let w = World::new();
    let (mut client, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    client.call(r#"PUSH {"jid":"a","jobtype":"email","args":[],"queue":"mail"}"#).await;
    assert_eq!(client.call("QUEUE LIST").await, r#"["mail"]"#);
    assert_eq!(client.call("QUEUE PAUSE mail").await, "+OK");
    assert_eq!(w.fetch(&mut worker, "mail").await, None);
    let latency: Value = serde_json::from_str(&client.call("QUEUE LATENCY mail none").await).unwrap();
    assert!(latency["mail"].as_f64().unwrap() >= 2.0 && latency["none"] == 0.0);
    assert_eq!(client.call("QUEUE RESUME *").await, "+OK");
    assert_eq!(client.call("QUEUE REMOVE mail").await, "+OK");
    assert_eq!(states(&w).await, [State::Cancelled]);
    let info: Value = serde_json::from_str(&client.call("INFO").await).unwrap();
    assert_eq!(info["faktory"]["queues"], json!({"mail": 0}));
    for name in ["total_enqueued", "total_failures", "total_processed", "total_queues"] {
        assert!(info["faktory"][name].is_number(), "{name}");
    }
    for name in ["command_count", "connections", "uptime", "used_memory_mb"] {
        assert!(info["server"][name].is_number(), "{name}");
    }
    assert!(client.call("QUEUE PAUSE").await.starts_with("-ERR"));
}

#[tokio::test]
async fn flush_needs_permission() {
    for (allowed, state) in [(false, State::Queued), (true, State::Cancelled)] {
        let w = World::with(None, allowed);
        let mut client = w.producer().await;
        client.call(r#"PUSH {"jid":"a","jobtype":"email","args":[]}"#).await;
        assert_eq!(client.call("FLUSH").await == "+OK", allowed);
        assert_eq!(states(&w).await, [state]);
    }
}

#[tokio::test]
async fn many_jobs_are_changed_at_once() {
    let w = World::new();
    let (mut client, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    let later = "2026-02-01T00:00:00Z";
    for (jid, kind, at, arg) in
        [("a", "email", later, 1), ("b", "sms", later, 1), ("c", "sms", later, 2), ("d", "sms", "", 2)]
    {
        let job = json!({"jid": jid, "jobtype": kind, "args": [arg], "at": at, "retry": -1, "queue": jid});
        assert_eq!(client.call(&format!("PUSH {job}")).await, "+OK");
    }
    let mut mutate = async |body: Value| assert_eq!(client.call(&format!("MUTATE {body}")).await, "+OK", "{body}");
    mutate(json!({"cmd": "discard", "target": "scheduled", "filter": {"jobtype": "email"}})).await;
    mutate(json!({"cmd": "requeue", "target": "scheduled", "filter": {"regexp": "*\"args\":[2]*"}})).await;
    mutate(json!({"cmd": "kill", "target": "scheduled", "filter": {"jids": ["b", "x"]}})).await;
    assert_eq!(states(&w).await, [State::Cancelled, State::Cancelled, State::Queued, State::Queued]);
    for queue in ["c", "d"] {
        assert!(w.fetch(&mut worker, queue).await.is_some());
        assert_eq!(worker.call(&format!("FAIL {}", json!({"jid": queue}))).await, "+OK");
    }
    mutate(json!({"cmd": "requeue", "target": "dead", "filter": {"jids": ["c"]}})).await;
    mutate(json!({"cmd": "clear", "target": "dead"})).await;
    assert_eq!(states(&w).await, [State::Cancelled, State::Cancelled, State::Queued, State::Failed]);
    assert!(
        w.job(w.windlass.jobs().list(&JobFilter::default(), windlass::client::Page::newest(1)).await.unwrap()[0].id.0)
            .await
            .discarded_at
            .is_some()
    );
}

#[tokio::test]
async fn what_is_not_offered_is_refused_clearly_and_end_ends() {
    let w = World::new();
    let mut client = w.producer().await;
    assert_eq!(client.call("BATCH NEW {}").await, "-ERR BATCH is not supported");
    assert_eq!(client.call("TRACK GET a").await, "-ERR TRACK is not supported");
    assert!(client.call("DANCE").await.starts_with("-ERR unknown command DANCE"));
    assert_eq!(client.call("END").await, "+OK");
    assert!(client.is_closed().await);
}
