//! The flow of family A on the real binary, scaled down (the library's tests check the exact 30, 60 and 120 seconds and
//! five minutes in virtual time), and alerts of several nodes: each notice is sent once, even if nodes restart.

use super::client::{Receiver, header};
use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use windlass_core::signature::Secret;

crate::on_both_stores!(
    a_job_and_its_webhook_fail_step_by_step_alert_once_and_are_replayed,
    several_nodes_send_an_alert_once_across_restarts,
);

const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const STEPS: &str = "steps:300ms/600ms/1200ms";

/// A receiver whose answer can be changed.
fn receiver(status: u16) -> (Receiver, Arc<AtomicU16>) {
    let health = Arc::new(AtomicU16::new(status));
    let status = health.clone();
    (Receiver::new(move |_| status.load(Ordering::SeqCst)), health)
}

/// Writes a file with these rules and the operator's URL.
fn configure(place: &Place, operator: &Receiver, rules: &str) {
    let url = &operator.url;
    place.write(
        "windlass.toml",
        &format!("[alerts]\nurls = [{url:?}]\nsecret = {SECRET:?}\nevery = \"200ms\"\n{rules}"),
    );
}

/// The notices that an operator received, such as `fired first 1`, in the order of arrival, without repetitions.
fn notices(operator: &Receiver) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut notices = Vec::new();
    for (head, body) in operator.got.lock().unwrap().iter() {
        let (id, at) = (header(head, "webhook-id").unwrap(), header(head, "webhook-timestamp").unwrap());
        let at: i64 = at.parse().unwrap();
        let signature = header(head, "webhook-signature").unwrap();
        Secret::parse(SECRET).unwrap().verify(&id, at, body.as_bytes(), &signature, at).unwrap();
        let before = seen.insert(id, body.clone());
        assert!(before.is_none_or(|before| before == *body), "one id, one body");
        let notice: Value = serde_json::from_str(body).unwrap();
        let word = notice["type"].as_str().unwrap().trim_start_matches("alert.");
        let line = format!("{word} {} {}", notice["data"]["subject"].as_str().unwrap(), notice["data"]["incident"]);
        if !notices.contains(&line) {
            notices.push(line);
        }
    }
    assert_eq!(seen.len(), notices.len(), "two ids for one change");
    notices
}

fn delays(history: &Value) -> Vec<Option<u64>> {
    history.as_array().unwrap().iter().map(|attempt| attempt["delayMs"].as_u64()).collect()
}

fn a_job_and_its_webhook_fail_step_by_step_alert_once_and_are_replayed(place: &Place) {
    let (target, target_health) = receiver(500);
    let (hook, hook_health) = receiver(503);
    let operator = Receiver::new(|_| 204);
    configure(place, &operator, "[alerts.rules.dead_letters]\nfor = \"1s\"\n");
    let node = place.serve(&["--allow-private-targets"]);
    let body = json!({
        "http": {"url": target.url}, "kind": "report", "retry": STEPS,
        "webhook": {"url": hook.url, "secret": SECRET, "policy": STEPS},
    });
    let id = node.client.post("/api/v1/jobs", &body.to_string()).is(201)["id"].as_i64().unwrap();
    let path = format!("/api/v1/jobs/{id}");

    // The job fails after its three steps, and so does the delivery that reports on it.
    let mut job = Value::Null;
    eventually("the delivery gives up", || {
        job = node.client.get(&path).is(200);
        job["deliveries"][0]["state"] == "failed"
    });
    assert_eq!((&job["state"], &job["reason"], &job["attempt"]), (&json!("failed"), &json!("exhausted"), &json!(4)));
    let steps = [Some(300), Some(600), Some(1200), None];
    let history = node.client.get(&format!("{path}/history")).is(200);
    assert_eq!(delays(&history["items"]), steps);
    let delivery = &job["deliveries"][0];
    assert_eq!((&delivery["reason"], &delivery["attempt"]), (&json!("exhausted"), &json!(4)));
    assert_eq!(delays(&delivery["history"]), steps);
    let delivery_id = delivery["id"].as_i64().unwrap();
    let of_delivery = node.client.get(&format!("/api/v1/jobs/{delivery_id}")).is(200);
    assert_eq!((&of_delivery["parentId"], &of_delivery["deliveries"]), (&json!(id), &json!([])));
    let tries = hook.webhooks();
    assert!(tries.len() == 4 && tries.iter().all(|one| *one == tries[0]), "{tries:?}");
    assert_eq!(delivery["webhookId"], json!(tries[0].0));
    let dead = node.client.get("/api/v1/dead-letters").is(200);
    let dead: Vec<_> = dead["items"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect();
    assert_eq!(dead, [delivery_id, id]);

    // The job shows its delivery, and the delivery shows its job.
    let shown = |args: &[&str]| {
        let output = place.command(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for args in [["jobs", "show"], ["dead", "show"]] {
        let of_job = shown(&[args[0], args[1], &id.to_string()]);
        assert!(of_job.contains("delivery") && of_job.contains(&hook.url) && of_job.contains("exhausted"), "{of_job}");
        let of_delivery = shown(&[args[0], args[1], &delivery_id.to_string()]);
        assert!(of_delivery.contains(&format!("reports on job {id}")), "{of_delivery}");
    }
    assert!(shown(&["history", &id.to_string()]).contains(&hook.url));
    assert!(shown(&["jobs", "--parent", &id.to_string()]).contains(&delivery_id.to_string()));

    // The alert fires once, and is resolved once after the replay.
    eventually("the operator gets the alert", || notices(&operator) == ["fired  1"]);
    target_health.store(200, Ordering::SeqCst);
    hook_health.store(204, Ordering::SeqCst);
    let replayed = node.client.post("/api/v1/dead-letters/replay", r#"{"filter":{},"all":true}"#).is(200);
    assert_eq!(replayed["done"], 2);
    eventually("the operator gets the end of the alert", || notices(&operator) == ["fired  1", "resolved  1"]);
    eventually("both deliveries arrive", || {
        job = node.client.get(&path).is(200);
        let states: Vec<_> = job["deliveries"].as_array().unwrap().iter().map(|d| d["state"].clone()).collect();
        states == ["succeeded", "succeeded"]
    });
    assert_eq!(job["state"], "succeeded");
    eventually("its end is logged", || node.logged("alert dead_letters is resolved") > 0);
    assert_eq!(node.logged("fires: "), 1);
    assert_eq!(node.logged("alert dead_letters is resolved"), 1);
}

/// Stores a job that becomes a dead letter of this queue at once.
fn die(node: &Node, queue: &str, target: &Receiver) {
    let body = json!({"http": {"url": target.url}, "queue": queue, "retry": "once"});
    node.client.post("/api/v1/jobs", &body.to_string()).is(201);
}

fn several_nodes_send_an_alert_once_across_restarts(place: &Place) {
    let (target, health) = receiver(500);
    let operator = Receiver::new(|_| 204);
    // The second rule is a probe: a node that fires it has also checked the first rule since it started.
    let rules = "[alerts.rules.first]\nmeasure = \"dead_letters\"\nqueue = \"first\"\nfor = \"500ms\"\n\
                 [alerts.rules.gauge]\nmeasure = \"dead_letters\"\nqueue = \"gauge\"\nfor = \"1s\"\n";
    configure(place, &operator, rules);
    let start = |name: &str| place.serve(&["--allow-private-targets", "--worker", name]);
    let (mut a, mut b) = (start("a"), start("b"));
    die(&a, "first", &target);
    eventually("it fires", || notices(&operator) == ["fired first 1"]);
    // The notice may arrive before the line: the node that fires the alert writes it after the commit.
    let fired = |a: &Node, b: &Node| a.logged("fires: ") + b.logged("fires: ");
    eventually("its line is logged", || fired(&a, &b) > 0);
    let before = fired(&a, &b);

    // Both nodes restart while the alert fires, one after the other: one is killed, one is stopped. No second notice is
    // sent.
    a.kill();
    a = start("a");
    b.signal("-TERM");
    b.ended();
    b = start("b");
    die(&a, "gauge", &target);
    eventually("the gauge fires", || notices(&operator).len() > 1);
    assert_eq!(notices(&operator), ["fired first 1", "fired gauge 1"]);
    let seen = b.client.get("/api/v1/alerts").is(200);
    let of =
        |name: &str| seen["items"].as_array().unwrap().iter().find(|alert| alert["subject"] == name).unwrap().clone();
    assert_eq!((&of("first")["status"], &of("first")["incident"]), (&json!("firing"), &json!(1)));

    // The alert is resolved: one notice is sent.
    health.store(200, Ordering::SeqCst);
    let replayed = b.client.post("/api/v1/dead-letters/replay", r#"{"filter":{"queue":"first"}}"#).is(200);
    assert_eq!(replayed["done"], 1);
    eventually("it is resolved", || notices(&operator).len() == 3);
    b.client.post("/api/v1/dead-letters/discard", r#"{"filter":{"queue":"gauge"},"reason":"a test"}"#).is(200);
    eventually("the gauge is resolved", || notices(&operator).len() > 3);
    let all = ["fired first 1", "fired gauge 1", "resolved first 1", "resolved gauge 1"];
    assert_eq!(notices(&operator), all);

    // It fires again: a new incident.
    health.store(500, Ordering::SeqCst);
    die(&b, "first", &target);
    eventually("it fires again", || notices(&operator).len() > 4);
    assert_eq!(notices(&operator)[4..], ["fired first 2"]);
    eventually("its line is logged", || before + fired(&a, &b) >= 3);
    assert_eq!(before + fired(&a, &b), 3, "one line in all logs for each incident");
}
