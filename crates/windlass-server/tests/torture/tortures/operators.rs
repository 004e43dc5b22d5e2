//! Operators interfere under load: they cancel, replay, purge and pause in random order.

use crate::checks::check::Allowed;
use crate::checks::history::Cancel;
use crate::setup::place::Place;
use crate::tools::{asked, below, chance};
use crate::work::spec::QUEUES;
use crate::work::worker::Habit;
use crate::world::World;

/// Operations in the short version.
const OPERATIONS: u64 = 80;
/// How many jobs are acknowledged before the operators begin.
const JOBS: u64 = 300;

fn operators_interfere_and_their_answers_hold(place: Place) {
    let world = World::start("operators", place, 1, Habit::Lives);
    world.load.wait_for(JOBS);
    let operations = OPERATIONS * asked("CYCLES", 1);
    let mut done = 0;
    while done < operations {
        world.load.check_threads();
        let Some(id) = any_job(&world) else { continue };
        let queue = QUEUES[below(&world.random, 3) as usize];
        match below(&world.random, 100) {
            0..45 => cancel(&world, id),
            45..92 => replay(&world, id),
            92..96 => pause_and_resume(&world, queue),
            _ => purge(&world, queue),
        }
        done += 1;
    }
    for queue in QUEUES {
        until_answered(&world, "POST", &format!("/api/v1/queues/{queue}/resume"));
    }
    let reported = {
        let record = world.shared.history.record();
        format!("{} cancels, {} replays, {} purges", record.cancels.len(), record.replays.len(), record.purges)
    };
    world.finish(&reported, Allowed::NoLostAttempt);
}

/// An acknowledged job: usually a recent one, which may still wait or run.
fn any_job(world: &World) -> Option<i64> {
    let record = world.shared.history.record();
    let count = record.acknowledged.len() as u64;
    let tag = if chance(&world.random, 70) {
        record.sent.len() as u64 - 1 - below(&world.random, 100.min(count))
    } else {
        below(&world.random, record.sent.len() as u64)
    };
    record.acknowledged.get(&tag).copied()
}

/// Each job is either cancelled or replayed, never both: a replay after a cancel would make the result uncertain.
fn is_for_cancels(id: i64) -> bool {
    id % 2 == 0
}

fn cancel(world: &World, id: i64) {
    if !is_for_cancels(id) {
        return;
    }
    let Some(answer) = call(world, "DELETE", &format!("/api/v1/jobs/{id}")) else { return };
    match answer {
        200 => world.shared.history.cancelled(id, Cancel::Ended),
        202 => world.shared.history.cancelled(id, Cancel::Asked),
        409 => {}
        other => panic!("a cancel of job {id} was answered {other}"),
    }
}

fn replay(world: &World, id: i64) {
    if is_for_cancels(id) {
        return;
    }
    let path = format!("/api/v1/jobs/{id}/retry");
    let Some(answer) = world.fleet().call(&world.random, "POST", &path, "") else { return };
    match answer.status {
        200 => {
            let reported = answer.json()["replays"].as_u64().expect("a job reports how often it was replayed") as u32;
            let mut record = world.shared.history.record();
            let replays = record.replays.entry(id).or_default();
            replays.asked += 1;
            replays.reported = replays.reported.max(reported);
        }
        // It is running.
        409 => {}
        other => panic!("a replay of job {id} was answered {other}"),
    }
}

fn pause_and_resume(world: &World, queue: &str) {
    until_answered(world, "POST", &format!("/api/v1/queues/{queue}/pause"));
    until_answered(world, "POST", &format!("/api/v1/queues/{queue}/resume"));
}

fn purge(world: &World, queue: &str) {
    // Counted before the call: jobs that it cancels may finish before it answers.
    world.shared.history.record().purges += 1;
    until_answered(world, "POST", &format!("/api/v1/queues/{queue}/purge"));
}

fn until_answered(world: &World, method: &str, path: &str) {
    loop {
        world.load.check_threads();
        match call(world, method, path) {
            // A queue that has not been used yet.
            Some(200 | 404) => return,
            Some(other) => panic!("{method} {path} was answered {other}"),
            None => {}
        }
    }
}

fn call(world: &World, method: &str, path: &str) -> Option<u16> {
    world.fleet().call(&world.random, method, path, "").map(|answer| answer.status)
}

#[test]
fn operators_interfere_on_sqlite_and_their_answers_hold() {
    operators_interfere_and_their_answers_hold(Place::sqlite());
}

#[test]
fn operators_interfere_on_postgres_and_their_answers_hold() {
    operators_interfere_and_their_answers_hold(Place::postgres());
}
