//! SIGTERM under load, one node after another: old and new processes run at the same time.

use crate::checks::check::Allowed;
use crate::setup::place::Place;
use crate::tools::asked;
use crate::work::worker::Habit;
use crate::world::World;

/// How many jobs are acknowledged between two restarts.
const JOBS: u64 = 200;

fn nodes_are_restarted_in_turn_and_no_attempt_is_lost(place: Place) {
    let world = World::start("rolling restart", place, 2, Habit::Lives);
    let rounds = asked("CYCLES", 1);
    for _ in 0..rounds {
        for index in 0..world.fleet().len() {
            world.load.wait_for_more(JOBS);
            let status = world.fleet().replace(index);
            assert_eq!(status.code(), Some(0), "a node that is asked to stop exits with success");
        }
    }
    world.load.wait_for_more(JOBS);
    world.finish(&format!("{} restarts by SIGTERM", rounds * 2), Allowed::NoLostAttempt);
}

#[test]
fn nodes_on_one_sqlite_file_are_restarted_in_turn_and_no_attempt_is_lost() {
    nodes_are_restarted_in_turn_and_no_attempt_is_lost(Place::sqlite());
}

#[test]
fn nodes_on_postgres_are_restarted_in_turn_and_no_attempt_is_lost() {
    nodes_are_restarted_in_turn_and_no_attempt_is_lost(Place::postgres());
}
