//! The primary of a Postgres with a synchronous standby freezes or is killed under load, and the standby is promoted.
//! The nodes find it by themselves; nothing acknowledged is lost, and the old primary changes nothing when it is back.

use crate::checks::check::Allowed;
use crate::setup::cluster::Cluster;
use crate::setup::place::Place;
use crate::tools::{asked, pause};
use crate::work::worker::Habit;
use crate::world::World;
use std::time::Duration;
use windlass::low_level::clock::Stopwatch;

/// How many jobs are acknowledged before and after the failover.
const JOBS: u64 = 100;
/// How long the primary is silent before the standby is promoted.
const SILENT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Its processes stop, and go on after the standby was promoted.
    Freezes,
    Dies,
}

fn fail_over(fault: Fault) {
    let primary = Cluster::start();
    let standby = primary.standby();
    let hosts = format!("{},{}", primary.host(), standby.host());
    let store = format!("postgres://windlass@{hosts}/postgres?target_session_attrs=read-write");
    let place = Place::postgres_at(&store, &standby.url("postgres"));
    let world = World::start(&format!("the primary {fault:?}"), place, 2, Habit::Lives);
    let nodes = world.fleet().process_ids();
    world.load.wait_for_more(JOBS);
    world.shared.with_fault(|| {
        match fault {
            Fault::Freezes => primary.signal("-STOP"),
            Fault::Dies => primary.signal("-KILL"),
        }
        pause(SILENT);
        standby.promote();
    });
    let promoted = Stopwatch::start();
    world.load.wait_for_more(JOBS);
    let resumed = promoted.elapsed();
    if let Fault::Freezes = fault {
        // Whoever manages the servers stops the old primary as soon as it moves.
        primary.signal("-CONT");
        primary.stop();
    }
    world.load.wait_for_more(JOBS);
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
    let resumed = format!("{JOBS} jobs acknowledged {:.1} s after the promotion", resumed.as_secs_f64());
    world.finish(&resumed, Allowed::NoLostAttempt);
}

#[test]
fn a_frozen_primary_is_replaced_and_changes_nothing_when_it_thaws() {
    (0..asked("CYCLES", 1)).for_each(|_| fail_over(Fault::Freezes));
}

#[test]
#[ignore = "part of the long torture"]
fn a_killed_primary_is_replaced() {
    (0..asked("CYCLES", 1)).for_each(|_| fail_over(Fault::Dies));
}
