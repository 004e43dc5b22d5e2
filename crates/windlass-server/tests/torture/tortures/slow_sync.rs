//! A disk on which each sync takes two seconds. Requests are slow but answered, no lease is lost because of it, and
//! nothing runs twice.

use crate::client::{Client, Receiver};
use crate::setup::cluster::Cluster;
use crate::setup::faulty_disk::{DiskFault, FaultyDisk};
use crate::setup::node::Node;
use crate::setup::place::Place;
use crate::tools::eventually;
use serde_json::{Value, json};
use std::time::Duration;
use windlass::low_level::clock::Stopwatch;

/// Jobs for remote workers, and as many calls.
const JOBS: usize = 20;
const LEASE_MS: u64 = 6_000;

fn works_slowly(place: &Place, disk: &FaultyDisk) {
    let mut command = place.node();
    command.args(["--listen", "127.0.0.1:0", "--log-format", "json", "--allow-private-targets"]);
    let mut node = Node::start(command);
    eventually("the node serves", || node.address().is_some());
    let client = Client { address: node.address().unwrap(), token: None };
    let receiver = Receiver::new(|_| 200);

    disk.set(DiskFault::SlowSync);
    let watch = Stopwatch::start();
    let job = json!({"kind": "a", "delivery": "AT_MOST_ONCE"});
    let call = json!({"http": {"url": receiver.url}, "queue": "calls"});
    let jobs = [vec![job; JOBS], vec![call; JOBS]].concat();
    client.post("/api/v1/jobs/batch", &json!({ "jobs": jobs }).to_string()).is(201);
    assert!(watch.elapsed() >= Duration::from_secs(2), "the disk is slow");
    client.get("/healthz").is(200);
    // Three more commits follow, so that only renewals keep it.
    let take = json!({"worker": "w", "queues": ["default"], "max": JOBS, "waitMs": 20_000, "leaseMs": LEASE_MS});
    let leased = client.post("/api/v1/leases", &take.to_string()).is(200);
    let jobs = leased["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), JOBS, "one claim takes them all");
    let held: Vec<Value> =
        jobs.iter().map(|job| json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]})).collect();
    let body = |held: &[Value]| json!({"worker": "w", "results": held}).to_string();
    for _ in 0..2 {
        let extend = json!({"worker": "w", "results": held, "leaseMs": LEASE_MS}).to_string();
        is_ok(&client.post("/api/v1/leases/extend", &extend).is(200));
    }
    is_ok(&client.post("/api/v1/leases/complete", &body(&held)).is(200));
    let calls = || client.get("/api/v1/jobs?queue=calls&state=succeeded&limit=100").is(200);
    eventually("every call is made", || calls()["items"].as_array().is_some_and(|items| items.len() == JOBS));
    assert_eq!(receiver.count(), JOBS, "each call is made once");
    for list in [calls(), client.get("/api/v1/jobs?queue=default&limit=100").is(200)] {
        for job in list["items"].as_array().unwrap() {
            let seen = (&job["state"], &job["attempt"], &job["failures"]);
            assert_eq!(seen, (&json!("succeeded"), &json!(1), &json!(0)), "{job}");
        }
    }
    disk.repair(DiskFault::SlowSync);
    node.terminate();
    eventually("the node stops", || node.ended().is_some());
    assert_eq!(node.panics(), Vec::<String>::new());
}

fn is_ok(answer: &Value) {
    let results = answer["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["result"] == "ok"), "{answer}");
}

#[test]
fn sqlite_with_syncs_of_two_seconds_loses_no_lease_and_runs_nothing_twice() {
    let disk = FaultyDisk::new();
    let mut place = Place::sqlite_at(&disk.path().join("jobs.db"));
    place.variables = disk.variables();
    works_slowly(&place, &disk);
}

#[test]
#[ignore = "waits for half a minute; scripts/torture runs it"]
fn postgres_with_syncs_of_two_seconds_loses_no_lease_and_runs_nothing_twice() {
    let disk = FaultyDisk::new();
    let cluster = Cluster::start_on(&disk);
    let url = cluster.url("postgres");
    works_slowly(&Place::postgres_at(&url, &url), &disk);
}
