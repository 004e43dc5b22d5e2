//! A remote worker: takes jobs under leases, does them, fails some once, is slow at times, dies at times.

use crate::tools::{chance, millis, pause};
use crate::work::load::Shared;
use crate::work::spec::QUEUES;
use serde_json::{Value, json};
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// How long its leases last.
pub const LEASE: Duration = Duration::from_secs(3);
/// Jobs taken at once.
const MAX: u32 = 200;

/// Whether workers die with jobs in their hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Dies,
    Lives,
}

pub fn work(shared: &Shared, random: &Random, name: &str) {
    while shared.is_working() {
        let subscription =
            json!({"worker": name, "queues": QUEUES, "max": MAX, "waitMs": 300, "leaseMs": LEASE.as_millis() as u64});
        let since = Since::now(shared);
        let Some(answer) = shared.fleet.call(random, "POST", "/api/v1/leases", &subscription.to_string()) else {
            pause(millis(random, 1..30));
            continue;
        };
        assert_eq!(answer.status, 200, "{}", answer.body);
        let jobs = answer.json()["jobs"].as_array().cloned().unwrap_or_default();
        if !jobs.is_empty() {
            do_all(shared, random, name, &jobs, since);
        }
    }
}

fn do_all(shared: &Shared, random: &Random, name: &str, jobs: &[Value], mut since: Since) {
    let key = |job: &Value| (job["id"].as_i64().unwrap(), job["attempt"].as_u64().unwrap() as u32);
    shared.history.started(jobs.iter().map(key));
    since.check(shared, jobs);
    if shared.habit == Habit::Dies && chance(random, 3) {
        return;
    }
    if chance(random, 3) {
        be_slow(shared, random, name, jobs, &mut since);
    }
    let fails = |job: &&Value| job["payload"]["failsOnce"] == true && job["attempt"] == 1;
    let (failing, passing): (Vec<&Value>, Vec<&Value>) = jobs.iter().partition(fails);
    let held = |job: &&Value| json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
    let failed: Vec<Value> = failing.iter().map(|job| with_message(held(job))).collect();
    tell(shared, random, name, "fail", &failed, &mut since);
    let passed: Vec<Value> = passing.iter().map(held).collect();
    let done = tell(shared, random, name, "complete", &passed, &mut since);
    since.check(shared, jobs);
    shared.history.record().completed.extend(done);
}

fn with_message(mut result: Value) -> Value {
    result["class"] = json!("Flaky");
    result["message"] = json!("the first attempt fails");
    result
}

/// Works for longer than a lease lasts, and extends it meanwhile.
fn be_slow(shared: &Shared, random: &Random, name: &str, jobs: &[Value], since: &mut Since) {
    let held: Vec<Value> =
        jobs.iter().map(|job| json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]})).collect();
    for _ in 0..4 {
        pause(LEASE / 3);
        let body = json!({"worker": name, "results": held, "leaseMs": LEASE.as_millis() as u64}).to_string();
        while shared.is_working() && shared.fleet.call(random, "POST", "/api/v1/leases/extend", &body).is_none() {
            *since = Since::now(shared);
            pause(millis(random, 1..50));
        }
        since.check(shared, jobs);
        *since = Since::now(shared);
    }
}

/// Since when this worker has neither renewed its leases nor been refused. When that is too long although no fault is
/// on (the machine is busy with other things), it is this worker that is late, and may lose them.
#[derive(Debug)]
struct Since {
    watch: Stopwatch,
    faults: Duration,
}

impl Since {
    fn now(shared: &Shared) -> Self {
        Self { watch: Stopwatch::start(), faults: shared.fault_time() }
    }

    fn check(&self, shared: &Shared, jobs: &[Value]) {
        let calm = self.watch.elapsed().saturating_sub(shared.fault_time() - self.faults);
        if calm > LEASE * 3 / 4 {
            shared.history.record().late.extend(jobs.iter().filter_map(|job| job["id"].as_i64()));
        }
    }
}

/// Sends results until one is answered. Returns those that counted.
fn tell(
    shared: &Shared,
    random: &Random,
    name: &str,
    action: &str,
    results: &[Value],
    since: &mut Since,
) -> Vec<(i64, u32)> {
    let (path, mut counted) = (format!("/api/v1/leases/{action}"), Vec::new());
    if results.is_empty() {
        return counted;
    }
    let body = json!({"worker": name, "results": results}).to_string();
    while shared.is_working() {
        let Some(answer) = shared.fleet.call(random, "POST", &path, &body) else {
            *since = Since::now(shared);
            pause(millis(random, 1..30));
            continue;
        };
        assert_eq!(answer.status, 200, "{}", answer.body);
        for reported in answer.json()["results"].as_array().unwrap() {
            if reported["result"] == "ok" {
                counted.push((reported["id"].as_i64().unwrap(), reported["attempt"].as_u64().unwrap() as u32));
            } else {
                shared.history.record().stale += 1;
            }
        }
        return counted;
    }
    counted
}
