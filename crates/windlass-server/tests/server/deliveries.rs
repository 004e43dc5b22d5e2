//! Nodes killed between finishing jobs and telling about it, again and again: every finished job's webhook arrives, always
//! with the same id and body; none arrives for a job that did not finish.

use super::client::{Client, Receiver};
use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass::Random;

crate::on_both_stores!(
    a_killed_node_tells_about_every_finished_job_and_about_no_other,
    whoever_is_to_be_reported_is_said_by_the_job_its_schedule_or_its_tenant,
);

const KILLS: usize = 8;
/// Never given up by the policy: how often a node dies is not the receiver's fault.
const PATIENT: &str = "fixed:base=50ms,jitter=none,retries=1000,maxCrashes=1000";

/// When a node is killed.
#[derive(Debug)]
enum Moment {
    /// As soon as the server has said that this many results count.
    Finished(u64),
    /// As soon as this many more tries have reached the receiver.
    Received(u64),
}

fn a_killed_node_tells_about_every_finished_job_and_about_no_other(place: &Place) {
    let seed = std::env::var("WINDLASS_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| Random::system().number());
    println!("seed {seed}: WINDLASS_TEST_SEED={seed} repeats it");
    let random = Random::seeded(seed);
    let pick = |below: u64| random.number() % below;
    // Deaf, rude or well: by the number of the call, so that every delivery gets through in the end.
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
                eventually("tries arrive", || hook.count() as u64 >= before + count);
            }
        }
        node.kill();
    }
    let node = start(place);
    eventually("every call is made and every webhook told", || {
        let live = node.client.get("/api/v1/jobs?state=queued,retrying,running&executor=http&limit=1").is(200);
        live["items"].as_array().unwrap().is_empty()
    });
    judge(&node.client, &hook);
}

/// Under one name: what the killed node held is free at once.
fn start(place: &Place) -> Node {
    place.serve(&["--allow-private-targets", "--worker", "n1"])
}

/// Jobs of every fate: done by a remote worker, calls that end well or not, cancelled, and never finished.
fn fill(client: &Client, hook: &Receiver, target: &Receiver) {
    let webhook = json!({"url": hook.url, "policy": PATIENT});
    let job = |queue: &str| json!({"kind": "a", "queue": queue, "retry": PATIENT, "webhook": webhook});
    let call = json!({"http": {"url": target.url}, "retry": "once", "webhook": webhook});
    let later = json!({"kind": "a", "queue": "later", "delay": "1h", "webhook": webhook});
    let mut jobs = vec![job("work"); 6];
    jobs.extend(vec![call; 3]);
    jobs.extend([job("unfinished"), job("unfinished"), later.clone(), later]);
    let stored = client.post("/api/v1/jobs/batch", &json!({"jobs": jobs, "atomic": true}).to_string()).is(201);
    let last = stored["results"].as_array().unwrap().last().unwrap()["id"].clone();
    client.send("DELETE", &format!("/api/v1/jobs/{last}"), "").unwrap().is(200);
    // Somebody takes these and is never heard of again.
    lease(client, "unfinished", 2);
}

fn lease(client: &Client, queue: &str, most: u64) -> Vec<Value> {
    let subscription = json!({"worker": "w", "queues": [queue], "max": most, "waitMs": 0, "leaseMs": 600_000});
    client.post("/api/v1/leases", &subscription.to_string()).is(200)["jobs"].as_array().unwrap().clone()
}

/// Finishes this many jobs, one by one: well, or for good.
fn work(client: &Client, count: u64) {
    for (n, job) in lease(client, "work", count).iter().enumerate() {
        let verb = if n % 2 == 0 { "complete" } else { "fail" };
        let mut result = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
        if verb == "fail" {
            result["permanent"] = json!(true);
            result["message"] = json!("no");
        }
        let body = json!({"worker": "w", "results": [result]}).to_string();
        let answer = client.post(&format!("/api/v1/leases/{verb}"), &body).is(200);
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
            assert!(!matches!(state, "succeeded" | "failed" | "cancelled"), "job {id} is {state} and nobody was told");
            unfinished += 1;
            continue;
        };
        assert_eq!(versions.len(), 1, "job {id} was told about in {} ways", versions.len());
        let (_, body) = versions.first().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["type"], json!(format!("job.{state}")), "job {id}");
        let shown = client.get(&format!("/api/v1/jobs/{id}")).is(200);
        assert_eq!(shown["deliveries"].as_array().unwrap().len(), 1, "job {id} has one delivery");
        finished += 1;
    }
    assert!(reported.is_empty(), "webhooks about no job there is: {reported:?}");
    println!("{KILLS} kills, {finished} finished jobs told in {} tries, {unfinished} unfinished ones not", tries.len());
    assert!(finished >= KILLS * 5 && unfinished >= KILLS * 3, "{finished} finished, {unfinished} unfinished");
}

fn whoever_is_to_be_reported_is_said_by_the_job_its_schedule_or_its_tenant(place: &Place) {
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
    eventually("all four are told", || tenants.count() + own.count() == 4);
    let reported = |receiver: &Receiver| -> BTreeSet<(Option<i64>, Option<i64>)> {
        let data = |body: &str| serde_json::from_str::<Value>(body).unwrap()["data"].take();
        let bodies = receiver.webhooks().into_iter().map(|(_, body)| data(&body));
        // A run is known by its schedule.
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
