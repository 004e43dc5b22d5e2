//! A remote worker: it leases jobs, completes them, fails some once, is sometimes slow, and sometimes dies.

use crate::client::Answer;
use crate::tools::{chance, millis, pause};
use crate::work::load::Shared;
use crate::work::spec::QUEUES;
use serde_json::{Value, json};
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// The length of its leases.
pub const LEASE: Duration = Duration::from_secs(3);
/// The most jobs of one request.
const MAX: u32 = 200;

/// Whether workers die while they hold jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Dies,
    Lives,
}

pub fn work(shared: &Shared, random: &Random, name: &str) {
    while shared.is_working() {
        let request =
            json!({"worker": name, "queues": QUEUES, "max": MAX, "waitMs": 300, "leaseMs": LEASE.as_millis() as u64});
        let (since, asked) = (Since::now(shared), shared.history.now());
        let Some(answer) = shared.fleet.call(random, "POST", "/api/v1/leases", &request.to_string()) else {
            pause(millis(random, 1..30));
            continue;
        };
        assert_eq!(answer.status, 200, "{}", answer.body);
        let jobs = answer.json()["jobs"].as_array().cloned().unwrap_or_default();
        shared.history.leased(jobs.iter().map(attempt_of), asked, LEASE);
        if !jobs.is_empty() {
            do_all(shared, random, name, &jobs, since);
        }
    }
}

fn do_all(shared: &Shared, random: &Random, name: &str, jobs: &[Value], mut since: Since) {
    shared.history.started(jobs.iter().map(attempt_of));
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
    report(shared, random, name, "fail", &failed, &mut since);
    let passed: Vec<Value> = passing.iter().map(held).collect();
    let done = report(shared, random, name, "complete", &passed, &mut since);
    since.check(shared, jobs);
    let now = shared.history.now();
    let mut record = shared.history.record();
    done.iter().for_each(|(job, _)| record.leases.succeeded(*job, now));
    record.completed.extend(done);
}

/// The job and attempt that a lease or a result is about.
fn attempt_of(item: &Value) -> (i64, u32) {
    (item["id"].as_i64().unwrap(), item["attempt"].as_u64().unwrap() as u32)
}

/// The attempts for which a request was answered with `ok`.
fn accepted(answer: &Answer) -> Vec<(i64, u32)> {
    let results = answer.json()["results"].as_array().cloned().unwrap_or_default();
    results.iter().filter(|result| result["result"] == "ok").map(attempt_of).collect()
}

fn with_message(mut result: Value) -> Value {
    result["class"] = json!("Flaky");
    result["message"] = json!("the first attempt fails");
    result
}

/// Works for longer than a lease lasts, and extends the lease meanwhile.
fn be_slow(shared: &Shared, random: &Random, name: &str, jobs: &[Value], since: &mut Since) {
    let held: Vec<Value> =
        jobs.iter().map(|job| json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]})).collect();
    for _ in 0..4 {
        pause(LEASE / 3);
        let body = json!({"worker": name, "results": held, "leaseMs": LEASE.as_millis() as u64}).to_string();
        while shared.is_working() {
            since.check(shared, jobs);
            let asked = shared.history.now();
            if let Some(answer) = shared.fleet.call(random, "POST", "/api/v1/leases/extend", &body) {
                let mut record = shared.history.record();
                accepted(&answer).into_iter().for_each(|attempt| record.leases.extended(attempt, asked + LEASE));
                break;
            }
            *since = Since::now(shared);
            pause(millis(random, 1..50));
        }
        since.check(shared, jobs);
        *since = Since::now(shared);
    }
}

/// The time since this worker last renewed its leases or was refused. If it is too long although there is no fault (the
/// machine is busy), this worker is late and may lose its leases. It is looked at before each call: waiting for a node
/// that then refuses makes nobody late.
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

/// Sends results until a request is answered. Returns the accepted ones.
fn report(
    shared: &Shared,
    random: &Random,
    name: &str,
    action: &str,
    results: &[Value],
    since: &mut Since,
) -> Vec<(i64, u32)> {
    let path = format!("/api/v1/leases/{action}");
    if results.is_empty() {
        return Vec::new();
    }
    let now = shared.history.now();
    results.iter().for_each(|result| shared.history.record().leases.reported(attempt_of(result), now));
    let body = json!({"worker": name, "results": results}).to_string();
    while shared.is_working() {
        since.check(shared, results);
        let Some(answer) = shared.fleet.call(random, "POST", &path, &body) else {
            *since = Since::now(shared);
            pause(millis(random, 1..30));
            continue;
        };
        assert_eq!(answer.status, 200, "{}", answer.body);
        let accepted = accepted(&answer);
        shared.history.record().stale += (results.len() - accepted.len()) as u64;
        return accepted;
    }
    Vec::new()
}
