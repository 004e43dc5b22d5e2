//! Secrets and payloads stay where they belong: a run full of marked ones, after which logs, metrics and answers are searched.

use super::world::World;
use crate::logs::{Format, subscriber};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tracing::callsite::rebuild_interest_cache;
use tracing::subscriber::set_global_default;
use windlass::http::{Egress, HttpExecutor, HttpOptions};
use windlass::low_level::event::{AttemptLog, EventKind};
use windlass::low_level::stores::Registry;
use windlass::{Attempt, Failure, JobKind, Worker};
use windlass_core::Executor;

const PAYLOAD: &str = "canary-payload-5d1f";
const HEADER: &str = "canary-header-77ab";
const KEY: &str = "canary-api-key-19c2";
/// `canary-webhook-secret-e4!`, as its kind of secret is written.
const SIGNING: &str = "Y2FuYXJ5LXdlYmhvb2stc2VjcmV0LWU0IQ==";
const HANG: Duration = Duration::from_secs(180);

thread_local! {
    /// What this thread logs. The test's runtime has one thread.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what a thread logs with that thread.
#[derive(Debug)]
struct Log;

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Logs everything there is. For the whole process: a scoped subscriber may miss lines that other tests, without one, came by
/// first.
fn log_everything() {
    let all = subscriber(Format::Json, "trace", AttemptLog::On, || Log).unwrap();
    set_global_default(all).expect("no other test logs for the whole process");
    rebuild_interest_cache();
}

/// A receiver that refuses everything and sends back what it was sent. Its address.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 * 1024];
            let mut length = 0;
            while !String::from_utf8_lossy(&request[..length]).contains("canary-payload") {
                match stream.read(&mut request[length..]).await {
                    Ok(0) | Err(_) => break,
                    Ok(more) => length += more,
                }
            }
            let head = format!("HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), &request[..length]].concat()).await;
        }
    });
    format!("http://{address}/hook")
}

#[derive(Debug, serde::Deserialize, serde::Serialize)]
struct Number(u32);

impl JobKind for Number {
    const KIND: &'static str = "number";
}

async fn count(_: Number, _: Attempt) -> Result<(), Failure> {
    Ok(())
}

/// Enqueues jobs full of canaries through the API and lets them fail. Answers everything the API said.
async fn live(w: &World, url: &str) -> Vec<String> {
    let mut said = Vec::new();
    let bodies = [
        // Calls a URL, with secret headers and a signed webhook.
        json!({"http": {"url": url, "headers": {"Authorization": format!("Bearer {HEADER}"), "X-Api-Key": KEY}},
            "payload": {"card": PAYLOAD}, "retry": "once", "webhook": {"url": url, "secret": format!("whsec_{SIGNING}")}}),
        // A payload that its handler cannot read: the message of that quotes it.
        json!({"kind": "number", "payload": PAYLOAD, "retry": "once"}),
        // Refused, one way and another.
        json!({"kind": "number", "payload": {"card": PAYLOAD}, "retry": {"policy": "stepped", "secret": SIGNING}}),
        json!({"kind": "number", "payload": PAYLOAD, "webhook": {"url": url, "secret": format!("whsec_{SIGNING}!")}}),
        json!({"http": {"url": "ftp://example.org", "headers": {"Authorization": HEADER}}, "payload": PAYLOAD}),
    ];
    for body in bodies {
        said.push(w.post("/api/v1/jobs", &body.to_string()).await.text);
    }
    said.push(w.post("/api/v1/jobs", &format!("{{\"payload\": {PAYLOAD}")).await.text);
    said.push(w.get(&format!("/api/v1/jobs?queue={PAYLOAD}!")).await.text);
    said
}

async fn work(w: &World) {
    let mut events = w.windlass.events().subscribe();
    let executor = HttpExecutor::new(
        HttpOptions { egress: Egress::AllowPrivate, ..HttpOptions::default() },
        w.store.clock().clone(),
    );
    let worker = Worker::new(&w.windlass).handle(count).all_queues(Executor::Worker, 4).http(executor);
    let worker = worker.all_queues(Executor::Http, 4);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = worker.run(async { drop(stopped.await) });
    let watch = async move {
        // The call gives up, the number cannot be read, and the delivery about the call is tried again.
        let (mut given_up, mut retried) = (0, 0);
        while given_up < 2 || retried < 1 {
            match events.recv().await.unwrap().event_kind {
                EventKind::GaveUp { .. } => given_up += 1,
                EventKind::Retried { .. } => retried += 1,
                EventKind::Queued | EventKind::Started { .. } | EventKind::Succeeded { .. } => {}
                EventKind::Cancelled | EventKind::Postponed { .. } => {}
            }
        }
        drop(stop);
    };
    let (ran, ()) = tokio::time::timeout(HANG, async { tokio::join!(run, watch) }).await.expect("the run ends");
    ran.unwrap();
}

#[tokio::test]
async fn no_payload_secret_or_token_gets_into_logs_metrics_or_answers() {
    log_everything();
    let open = World::new();
    let w = open.with_token(&["admin"], None).await;
    let token = w.token().split('_').next_back().unwrap().to_owned();
    let url = echo().await;
    let mut said = live(&w, &url).await;
    work(&w).await;
    let jobs = w.get("/api/v1/jobs?limit=100").await.text;
    let ids: Vec<i64> = serde_json::from_str::<Value>(&jobs).unwrap()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "two jobs and a delivery: {jobs}");
    said.push(jobs);
    for id in ids {
        said.push(w.get(&format!("/api/v1/jobs/{id}")).await.text);
    }
    for path in ["queues", "dead-letters", "stats", "workers", "alerts", "policies", "dead-letters?group=true"] {
        said.push(w.get(&format!("/api/v1/{path}")).await.text);
    }
    let wrong = w.send(hyper::Method::GET, "/api/v1/jobs", None, &[("x-canary", HEADER)]).await;
    said.push(wrong.text);

    let logs = String::from_utf8(LOG.take()).unwrap();
    let metrics = w.get("/metrics").await.text;
    for (what, text) in [("logs", &logs), ("metrics", &metrics)] {
        for canary in [PAYLOAD, HEADER, KEY, SIGNING, token.as_str()] {
            assert!(!text.contains(canary), "{canary} is in the {what}");
        }
    }
    for text in &said {
        for canary in [SIGNING, token.as_str()] {
            assert!(!text.contains(canary), "{canary} is in an answer: {text}");
        }
    }
    // What was logged is what should be: the test looked at something.
    let lines: Vec<Value> = logs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let retried =
        lines.iter().find(|line| line["message"].as_str().is_some_and(|m| m.contains("retry 1/3 in 30s"))).unwrap();
    for field in ["tenantId", "jobId", "queue", "kind", "attempt", "maxAttempts", "nextRunAt", "delayMs", "errorClass"]
    {
        assert!(!retried[field].is_null(), "{field} is missing: {retried}");
    }
    assert_eq!(retried["error"], "HTTP 500");
    let given_up: Vec<_> =
        lines.iter().filter(|line| line["level"] == "ERROR").map(|line| line["verdict"].clone()).collect();
    assert!(given_up.contains(&"exhausted".into()) && given_up.contains(&"permanent".into()), "{given_up:?}");
    assert!(lines.iter().any(|line| !line["requestId"].is_null() && line["status"] == 201));
}
