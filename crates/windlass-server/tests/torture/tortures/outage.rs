//! The database fails under load: it is cut off, cut off during COMMIT, unavailable for longer than a lease, or stopped
//! and started. Nothing is lost, no attempt counts as a failure, and no node needs a restart.

use crate::checks::check::Allowed;
use crate::proxy::{Cut, Proxy};
use crate::setup::cluster::Cluster;
use crate::setup::place::Place;
use crate::tools::{asked, chance, millis, pause};
use crate::work::worker::{Habit, LEASE};
use crate::world::World;
use std::time::Duration;

/// How many jobs are acknowledged between two faults, to show that the fleet has recovered.
const JOBS: u64 = 100;

/// The length of an outage. Every second one is longer than any lease.
fn span(world: &World, cycle: u64) -> Duration {
    if cycle % 2 == 1 { LEASE * 2 + millis(&world.random, 0..2000) } else { millis(&world.random, 10..1000) }
}

#[test]
fn a_database_that_is_cut_off_costs_no_job_an_attempt() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut place = Place::postgres();
    let proxy = runtime.block_on(Proxy::start(&place.direct, "COMMIT", Cut::BeforeServer));
    place.store.clone_from(&proxy.url);
    let world = World::start("database cut off", place, 2, Habit::Lives);
    let nodes = world.fleet().process_ids();
    let (cycles, mut cuts, mut commits) = (2 * asked("CYCLES", 1), 0, 0);
    for cycle in 0..cycles {
        world.load.wait_for_more(JOBS);
        for cut in [Cut::BeforeServer, Cut::AfterServer] {
            proxy.arm_for(cut);
            world.load.wait_for_more(JOBS / 4);
            commits += u32::from(proxy.has_cut());
        }
        // Cut off during a commit, and then cut off completely, so that no node can check whether the commit succeeded.
        if chance(&world.random, 50) {
            proxy.arm_for(Cut::AfterServer);
            crate::tools::eventually("a commit is cut off", || proxy.has_cut());
            commits += 1;
        }
        let span = span(&world, cycle);
        world.shared.with_fault(|| {
            proxy.shut();
            pause(span);
            proxy.open();
        });
        cuts += 1;
    }
    world.load.wait_for_more(JOBS);
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
    world.finish(&format!("{cuts} outages, {commits} commits cut off"), Allowed::NoLostAttempt);
}

#[test]
fn a_database_that_is_stopped_and_started_costs_no_job_an_attempt() {
    let cluster = Cluster::start();
    let url = cluster.url("postgres");
    let world = World::start("database stopped", Place::postgres_at(&url, &url), 2, Habit::Lives);
    let nodes = world.fleet().process_ids();
    let cycles = 2 * asked("CYCLES", 1);
    for cycle in 0..cycles {
        world.load.wait_for_more(JOBS);
        let span = span(&world, cycle);
        world.shared.with_fault(|| {
            cluster.stop();
            pause(span);
            assert!(cluster.up(), "the cluster starts again");
        });
    }
    world.load.wait_for_more(JOBS);
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
    world.finish(&format!("{cycles} stops of the server"), Allowed::NoLostAttempt);
}
