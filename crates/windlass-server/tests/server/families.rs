//! The first steps of users of the five families, end to end.

use super::client::Receiver;
use super::node::{Place, eventually};
use serde_json::json;
use std::io::Read as _;
use std::process::{Command, Stdio};

crate::on_both_stores!(
    a_url_is_called_until_it_answers_and_a_webhook_reports_it,
    a_remote_worker_in_python_does_everything,
    limits_by_environment_archive_a_job_after_its_attempts,
);

fn a_url_is_called_until_it_answers_and_a_webhook_reports_it(place: &Place) {
    let node = place.serve(&["--allow-private-targets"]);
    let target = Receiver::new(|n| if n < 3 { 503 } else { 200 });
    let hook = Receiver::new(|_| 204);
    let body = json!({
        "http": {"url": target.url, "headers": {"X-Note": "hi"}}, "payload": {"a": 1},
        "retry": "fixed:base=50ms,jitter=none,retries=5",
        "webhook": {"url": hook.url, "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
    });
    let job = node.client.post("/api/v1/jobs", &body.to_string()).is(201);
    let id = job["id"].as_i64().unwrap();
    eventually("the job succeeds", || node.client.state(id) == "succeeded");
    let history = node.client.get(&format!("/api/v1/jobs/{id}/history")).is(200);
    let labels: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|a| a["label"].as_str().unwrap().to_owned()).collect();
    assert_eq!(labels, ["Initial", "Retry #1", "Retry #2"]);
    assert_eq!(history["items"][0]["errorClass"], "ServerError");
    let calls = target.got.lock().unwrap().clone();
    assert!(calls.iter().all(|(_, body)| body == "{\"a\":1}"), "{calls:?}");
    eventually("the webhook arrives", || hook.count() == 1);
    let (head, body) = hook.got.lock().unwrap()[0].clone();
    let head = head.to_ascii_lowercase();
    assert!(head.contains("webhook-signature: v1,") && head.contains("webhook-id: msg_"), "{head}");
    assert!(body.contains("\"type\":\"job.succeeded\""), "{body}");
}

fn a_remote_worker_in_python_does_everything(place: &Place) {
    let node = place.serve(&[]);
    let enqueue = |body: &str| node.client.post("/api/v1/jobs", body).is(201)["id"].as_i64().unwrap();
    let echo = enqueue(r#"{"kind":"echo","queue":"py","payload":{"x":"é"}}"#);
    let flaky = enqueue(r#"{"kind":"flaky","queue":"py","payload":{"fails":2}}"#);
    let invalid = enqueue(r#"{"kind":"invalid","queue":"py"}"#);
    let slow = enqueue(r#"{"kind":"slow","queue":"py","payload":{"seconds":600}}"#);
    let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python_worker.py");
    let server = format!("http://{}", node.client.address);
    let mut python = Command::new("python3")
        .args([worker, "--server", &server, "--queue", "py", "--lease-ms", "15000", "--grace", "0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    eventually("echo", || node.client.state(echo) == "succeeded");
    eventually("flaky", || node.client.state(flaky) == "succeeded");
    eventually("invalid", || node.client.state(invalid) == "failed");
    let lease_until = || node.client.get(&format!("/api/v1/jobs/{slow}")).is(200)["leaseUntil"].clone();
    eventually("slow runs", || !lease_until().is_null());
    let first = lease_until();
    eventually("its lease is renewed", || lease_until() != first);
    assert_eq!(node.client.state(slow), "running");
    let done = node.client.get(&format!("/api/v1/jobs/{echo}")).is(200);
    assert_eq!(done["result"], json!({"payload": {"x": "é"}, "attempt": 1}));
    assert_eq!(node.client.get(&format!("/api/v1/jobs/{flaky}")).is(200)["failures"], 2);
    assert_eq!(node.client.get(&format!("/api/v1/jobs/{invalid}")).is(200)["reason"], "permanent");
    assert!(Command::new("kill").args(["-TERM", &python.id().to_string()]).status().unwrap().success());
    let mut said = String::new();
    python.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(python.wait().unwrap().success(), "{said}");
    eventually("the running job is handed back", || node.client.state(slow) == "queued");
    let history = node.client.get(&format!("/api/v1/jobs/{slow}/history")).is(200);
    assert_eq!(history["items"][0]["status"], "RELEASED");
}

fn limits_by_environment_archive_a_job_after_its_attempts(place: &Place) {
    let node = place.serve_with(&[], &[("MAX_EMAIL_RETRY_ATTEMPTS", "2")]);
    let body = r#"{"kind":"mail","queue":"email","retry":{"policy":"queue-worker","base":"10ms","maxAttempts":2}}"#;
    assert_eq!(
        node.client.post("/api/v1/jobs", r#"{"kind":"mail","queue":"email","delay":"1h"}"#).is(201)["maxAttempts"],
        2
    );
    let id = node.client.post("/api/v1/jobs", body).is(201)["id"].as_i64().unwrap();
    for attempt in 1..=2 {
        let mut job = json!(null);
        eventually("the job is leased", || {
            let request = r#"{"worker":"w","queues":["email"],"waitMs":500}"#;
            job = node.client.post("/api/v1/leases", request).is(200)["jobs"]
                .as_array_mut()
                .unwrap()
                .pop()
                .unwrap_or_default();
            !job.is_null()
        });
        assert_eq!(job["attempt"], attempt);
        let result =
            json!({"worker": "w", "results": [{"id": id, "attempt": attempt, "lease": job["lease"], "message": "no"}]});
        assert_eq!(node.client.post("/api/v1/leases/fail", &result.to_string()).is(200)["results"][0]["result"], "ok");
    }
    let job = node.client.get(&format!("/api/v1/jobs/{id}")).is(200);
    assert_eq!((&job["state"], &job["reason"], &job["readCount"]), (&json!("failed"), &json!("exhausted"), &json!(2)));
    let again = node.client.post(&format!("/api/v1/jobs/{id}/retry"), "").is(200);
    assert_eq!(again["state"], "queued");
}
