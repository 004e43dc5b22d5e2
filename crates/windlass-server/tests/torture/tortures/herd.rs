//! A herd: very many retries due in the same instant. All of them finish.

use crate::checks::stored::Stored;
use crate::setup::fleet::Fleet;
use crate::setup::place::Place;
use crate::tools::{asked, progress};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use windlass::Clock;
use windlass::Random;

/// Retries of the short version.
const HERD: u64 = 2000;
/// Jobs stored, taken or answered by one request.
const STEP: u64 = 1000;
/// How many threads work at once.
const WORKERS: usize = 3;
/// When the retries are due, for each thousand of them: failing them takes time.
const LEAD: Duration = Duration::from_millis(400);

fn retries_due_in_one_instant_all_finish(place: Place) {
    let (count, random, clock) = (asked("HERD", HERD), Random::system(), Clock::system());
    let fleet = Fleet::start(place, 1);
    enqueue(&fleet, &random, count);
    // All are taken before the first is answered: no retry is taken while others still fail.
    let mut held = Vec::new();
    while (held.len() as u64) < count {
        held.extend(take(&fleet, &random));
    }
    let now = || clock.monotonic().to_std();
    let target = now() + LEAD * (count / STEP) as u32;
    for some in held.chunks(STEP as usize) {
        let wait = format!("{}ms", target.saturating_sub(now()).as_millis());
        tell(&fleet, &random, "fail", some, |result| result["retryIn"] = json!(wait));
    }
    let left = Mutex::new(count);
    std::thread::scope(|threads| {
        let workers: Vec<_> = (0..WORKERS).map(|_| threads.spawn(|| finish(&fleet, &left))).collect();
        progress("retries", || *left.lock().unwrap());
        workers.into_iter().for_each(|worker| worker.join().expect("a worker failed"));
    });
    fleet.stop();
    let stored = Stored::read(&fleet.place);
    assert_eq!(stored.jobs.len() as u64, count);
    for row in stored.jobs.values() {
        assert_eq!((row.state.as_str(), row.attempt, row.failures), ("succeeded", 2, 1), "{row:?}");
    }
    println!("herd on {}: {count} retries due in one instant, all finished", fleet.place.name());
}

fn enqueue(fleet: &Fleet, random: &Random, count: u64) {
    for first in (0..count).step_by(STEP as usize) {
        let job = |n: u64| json!({"kind": "herd", "queue": "herd", "payload": n, "retry": "fixed:base=1m,retries=3"});
        let jobs: Vec<Value> = (first..(first + STEP).min(count)).map(job).collect();
        let answer = fleet.call(random, "POST", "/api/v1/jobs/batch", &json!({"jobs": jobs}).to_string());
        assert_eq!(answer.map(|answer| answer.status), Some(201));
    }
}

fn take(fleet: &Fleet, random: &Random) -> Vec<Value> {
    let subscription =
        json!({"worker": "herder", "queues": ["herd"], "max": STEP, "waitMs": 500, "leaseMs": 3_600_000});
    let answer = fleet.call(random, "POST", "/api/v1/leases", &subscription.to_string()).expect("the node is there");
    answer.is(200)["jobs"].as_array().cloned().unwrap_or_default()
}

fn tell(fleet: &Fleet, random: &Random, action: &str, jobs: &[Value], more: impl Fn(&mut Value)) {
    let result = |job: &Value| {
        let mut result = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
        more(&mut result);
        result
    };
    let results: Vec<Value> = jobs.iter().map(result).collect();
    let body = json!({"worker": "herder", "results": results}).to_string();
    let reported =
        fleet.call(random, "POST", &format!("/api/v1/leases/{action}"), &body).expect("the node is there").is(200);
    assert!(reported["results"].as_array().unwrap().iter().all(|result| result["result"] == "ok"), "{reported}");
}

/// Takes and completes jobs until none is left.
fn finish(fleet: &Fleet, left: &Mutex<u64>) {
    let random = Random::system();
    while *left.lock().unwrap() > 0 {
        let jobs = take(fleet, &random);
        if !jobs.is_empty() {
            tell(fleet, &random, "complete", &jobs, |_| {});
            *left.lock().unwrap() -= jobs.len() as u64;
        }
    }
}

#[test]
fn retries_due_in_one_instant_on_sqlite_all_finish() {
    retries_due_in_one_instant_all_finish(Place::sqlite());
}

#[test]
fn retries_due_in_one_instant_on_postgres_all_finish() {
    retries_due_in_one_instant_all_finish(Place::postgres());
}
