//! Nodes are killed repeatedly between the end of a job and its webhook. The webhook of every finished job arrives,
//! always with the same id and body. No webhook arrives for an unfinished job.

use super::client::{Client, Receiver};
use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass::Random;

crate::on_both_stores!(
    a_killed_node_sends_webhooks_for_finished_jobs_only,
    the_webhook_comes_from_the_job_its_schedule_or_its_tenant,
);

const KILLS: usize = 8;
/// A policy that never gives up in this test, because each kill of a node costs an attempt.
const MANY_RETRIES: &str = "fixed:base=50ms,jitter=none,retries=1000,maxCrashes=1000";

/// When a node is killed.
#[derive(Debug)]
enum Moment {
    /// As soon as the server has accepted this many results.
    Finished(u64),
    /// As soon as this many more attempts have reached the receiver.
    Received(u64),
}

fn a_killed_node_sends_webhooks_for_finished_jobs_only(place: &Place) {
    let seed = std::env::var("WINDLASS_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| Random::system().number());
    println!("seed {seed}: WINDLASS_TEST_SEED={seed} repeats it");
    let random = Random::seeded(seed);
    let pick = |below: u64| random.number() % below;
    // The call's number decides whether the receiver accepts, refuses or hangs up, so every delivery succeeds in the
    // end.
    let hook = Receiver::new(|n| [204, 503, 204, 0, 204][n % 5]);
    let target = Receiver::new(|n| if n % 3 == 0 { 500 } else { 200 });
    for _ in 0..KILLS {
        let mut node = start(place);
        fill(&node.client, &hook, &target);
        let moment = if pick(2) == 0 { Moment::Finished(1 + pick(6)) } else { Moment::Received(1 + pick(12)) };
        let before = hook.count() as u64;
        match moment {
            Moment::Finished(count) => work(&node.client, count),
            Moment::Received(count) => {
                work(&node.client, 6);
                eventually("attempts arrive", || hook.count() as u64 >= before + count);
            }
        }
        node.kill();
    }
    let node = start(place);
    eventually("every call is made and every webhook is delivered", || {
        let live = node.client.get("/api/v1/jobs?state=queued,retrying,running&executor=http&limit=1").is(200);
        live["items"].as_array().unwrap().is_empty()
    });
    judge(&node.client, &hook);
}

/// All nodes have the same name, so that the leases of a killed node are freed at once.
fn start(place: &Place) -> Node {
    place.serve(&["--allow-private-targets", "--worker", "n1"])
}

/// Jobs that end in every way: run by a remote worker, calls that succeed or fail, cancelled, and never finished.
fn fill(client: &Client, hook: &Receiver, target: &Receiver) {
    let webhook = json!({"url": hook.url, "policy": MANY_RETRIES});
    let job = |queue: &str| json!({"kind": "a", "queue": queue, "retry": MANY_RETRIES, "webhook": webhook});
    let call = json!({"http": {"url": target.url}, "retry": "once", "webhook": webhook});
    let later = json!({"kind": "a", "queue": "later", "delay": "1h", "webhook": webhook});
    let mut jobs = vec![job("work"); 6];
    jobs.extend(vec![call; 3]);
    jobs.extend([job("unfinished"), job("unfinished"), later.clone(), later]);
    let stored = client.post("/api/v1/jobs/batch", &json!({"jobs": jobs, "atomic": true}).to_string()).is(201);
    let last = stored["results"].as_array().unwrap().last().unwrap()["id"].clone();
    client.send("DELETE", &format!("/api/v1/jobs/{last}"), "").unwrap().is(200);
    // A worker takes these jobs and never reports a result.
    lease(client, "unfinished", 2);
}

fn lease(client: &Client, queue: &str, most: u64) -> Vec<Value> {
    let request = json!({"worker": "w", "queues": [queue], "max": most, "waitMs": 0, "leaseMs": 600_000});
    client.post("/api/v1/leases", &request.to_string()).is(200)["jobs"].as_array().unwrap().clone()
}

/// Finishes this many jobs one by one: half of them succeed, the others fail permanently.
fn work(client: &Client, count: u64) {
    for (n, job) in lease(client, "work", count).iter().enumerate() {
        let action = if n % 2 == 0 { "complete" } else { "fail" };
        let mut result = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
        if action == "fail" {
            result["permanent"] = json!(true);
            result["message"] = json!("no");
        }
        let body = json!({"worker": "w", "results": [result]}).to_string();
        let answer = client.post(&format!("/api/v1/leases/{action}"), &body).is(200);
        assert_eq!(answer["results"][0]["result"], "ok", "{answer}");
    }
}

fn judge(client: &Client, hook: &Receiver) {
    let mut reported: BTreeMap<i64, BTreeSet<(String, String)>> = BTreeMap::new();
    let tries = hook.webhooks();
    for (id, body) in &tries {
        let parsed: Value = serde_json::from_str(body).unwrap();
        let job = parsed["data"]["id"].as_i64().unwrap();
        reported.entry(job).or_default().insert((id.clone(), body.clone()));
    }
    let (mut finished, mut unfinished) = (0, 0);
    let page = client.get("/api/v1/jobs?limit=1000").is(200);
    assert!(page["next"].is_null(), "one page holds them all");
    for job in page["items"].as_array().unwrap().iter().filter(|job| !job["webhook"].is_null()) {
        let id = job["id"].as_i64().unwrap();
        let state = job["state"].as_str().unwrap();
        let Some(versions) = reported.remove(&id) else {
            assert!(!matches!(state, "succeeded" | "failed" | "cancelled"), "job {id} is {state} and has no webhook");
            unfinished += 1;
            continue;
        };
        assert_eq!(versions.len(), 1, "job {id} has {} different webhooks", versions.len());
        let (_, body) = versions.first().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["type"], json!(format!("job.{state}")), "job {id}");
        let shown = client.get(&format!("/api/v1/jobs/{id}")).is(200);
        assert_eq!(shown["deliveries"].as_array().unwrap().len(), 1, "job {id} has one delivery");
        finished += 1;
    }
    assert!(reported.is_empty(), "webhooks about unknown jobs: {reported:?}");
    println!(
        "{KILLS} kills, {finished} finished jobs with {} webhook attempts, {unfinished} unfinished jobs without",
        tries.len()
    );
    assert!(finished >= KILLS * 5 && unfinished >= KILLS * 3, "{finished} finished, {unfinished} unfinished");
}

fn the_webhook_comes_from_the_job_its_schedule_or_its_tenant(place: &Place) {
    let (tenants, own) = (Receiver::new(|_| 204), Receiver::new(|_| 204));
    let target = Receiver::new(|_| 200);
    let of_tenant = format!("[tenants.acme.webhook]\nurl = {:?}\nevents = [\"succeeded\"]\n", tenants.url);
    place.write("windlass.toml", &of_tenant);
    let node = place.serve(&["--allow-private-targets"]);
    let mut job = json!({"tenantId": "acme", "http": {"url": target.url}});
    let post = |path: &str, body: &Value| node.client.post(path, &body.to_string()).is(201)["id"].as_i64().unwrap();
    let by_tenant = post("/api/v1/jobs", &job);
    let schedule_by_tenant = post("/api/v1/schedules", &json!({"every": "1h", "job": job}));
    job["webhook"] = json!({"url": own.url});
    let by_job = post("/api/v1/jobs", &job);
    let by_schedule = post("/api/v1/schedules", &json!({"every": "1h", "job": job}));
    for schedule in [schedule_by_tenant, by_schedule] {
        node.client.post(&format!("/api/v1/schedules/{schedule}/trigger"), "").is(201);
    }
    eventually("all four webhooks arrive", || tenants.count() + own.count() == 4);
    let reported = |receiver: &Receiver| -> BTreeSet<(Option<i64>, Option<i64>)> {
        let data = |body: &str| serde_json::from_str::<Value>(body).unwrap()["data"].take();
        let bodies = receiver.webhooks().into_iter().map(|(_, body)| data(&body));
        // A run is identified by its schedule.
        bodies
            .map(|data| match data["scheduleId"].as_i64() {
                Some(schedule) => (None, Some(schedule)),
                None => (data["id"].as_i64(), None),
            })
            .collect()
    };
    assert_eq!(reported(&tenants), BTreeSet::from([(Some(by_tenant), None), (None, Some(schedule_by_tenant))]));
    assert_eq!(reported(&own), BTreeSet::from([(Some(by_job), None), (None, Some(by_schedule))]));
}
