//! A producer: enqueues singly and in batches, and repeats what has a key until it is answered.

use crate::tools::{below, chance, millis, pause};
use crate::work::load::Shared;
use crate::work::spec::Spec;
use serde_json::{Value, json};
use windlass::Random;

/// The most jobs of one batch.
const MAX_BATCH: u64 = 400;

pub fn produce(shared: &Shared, random: &Random) {
    while shared.is_producing() {
        if shared.is_full() {
            pause(millis(random, 1..20));
        } else if chance(random, 50) {
            single(shared, random);
        } else {
            batch(shared, random);
        }
    }
}

fn draw(shared: &Shared, random: &Random, count: u64) -> Vec<Spec> {
    let first = shared.history.new_tags(count);
    // A batch has keys or it has none: what has none is never repeated.
    let has_key = chance(random, 70);
    let specs: Vec<Spec> = (first..first + count).map(|tag| Spec::draw(random, tag, has_key)).collect();
    shared.history.sent(&specs);
    specs
}

fn single(shared: &Shared, random: &Random) {
    let specs = draw(shared, random, 1);
    let body = specs[0].body(&shared.receiver).to_string();
    send(shared, random, "/api/v1/jobs", &body, &specs, |answer| vec![answer["id"].as_i64()]);
}

fn batch(shared: &Shared, random: &Random) {
    let specs = draw(shared, random, 2 + below(random, MAX_BATCH));
    let jobs: Vec<Value> = specs.iter().map(|spec| spec.body(&shared.receiver)).collect();
    let body = json!({"jobs": jobs, "atomic": chance(random, 50)}).to_string();
    send(shared, random, "/api/v1/jobs/batch", &body, &specs, |answer| {
        answer["results"].as_array().unwrap().iter().map(|item| item["id"].as_i64()).collect()
    });
}

/// Sends once, or with keys until it is answered; records what is acknowledged.
fn send(
    shared: &Shared,
    random: &Random,
    path: &str,
    body: &str,
    specs: &[Spec],
    ids: impl Fn(&Value) -> Vec<Option<i64>>,
) {
    loop {
        if let Some(answer) = shared.fleet.call(random, "POST", path, body) {
            assert!(answer.status == 201 || answer.status == 200, "{path}: {} {}", answer.status, answer.body);
            let ids = ids(&answer.json());
            assert_eq!(ids.len(), specs.len(), "{}", answer.body);
            let stored = specs.iter().zip(ids).map(|(spec, id)| (spec.tag, id.expect("a stored job has an id")));
            return shared.history.acknowledged(stored);
        }
        if !specs[0].has_key || !shared.is_working() {
            return;
        }
        pause(millis(random, 1..30));
    }
}
