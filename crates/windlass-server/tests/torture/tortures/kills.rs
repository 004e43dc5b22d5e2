//! Nodes are killed at random moments, even during their start, and started again at once.

use crate::checks::check::Allowed;
use crate::setup::place::Place;
use crate::tools::{asked, below, chance, millis, pause};
use crate::work::worker::Habit;
use crate::world::World;

/// Kills and acknowledged jobs in the short version.
const KILLS: u64 = 5;
const JOBS: u64 = 1000;

fn nodes_are_killed_and_nothing_acknowledged_is_lost(place: Place, nodes: usize) {
    let world = World::start("kill -9", place, nodes, Habit::Dies);
    let (kills, jobs) = (asked("KILLS", KILLS), asked("JOBS", JOBS));
    let mut killed = 0;
    while killed < kills || world.shared.history.count() < jobs {
        world.load.check_threads();
        let index = below(&world.random, nodes as u64) as usize;
        // Sometimes a node is killed while it starts.
        if chance(&world.random, 85) {
            world.fleet().wait_serving(index);
            pause(millis(&world.random, 20..1500));
        } else {
            pause(millis(&world.random, 0..100));
        }
        world.fleet().kill(index);
        killed += 1;
    }
    (0..nodes).for_each(|index| world.fleet().wait_serving(index));
    world.finish(&format!("{killed} kills"), Allowed::LostAttempts);
}

#[test]
fn one_node_on_sqlite_is_killed_and_nothing_acknowledged_is_lost() {
    nodes_are_killed_and_nothing_acknowledged_is_lost(Place::sqlite(), 1);
}

#[test]
fn two_nodes_on_one_sqlite_file_are_killed_and_nothing_acknowledged_is_lost() {
    nodes_are_killed_and_nothing_acknowledged_is_lost(Place::sqlite(), 2);
}

#[test]
fn two_nodes_on_postgres_are_killed_and_nothing_acknowledged_is_lost() {
    nodes_are_killed_and_nothing_acknowledged_is_lost(Place::postgres(), 2);
}
