//! A real Patroni cluster under load loses its primary in every way: nothing acknowledged is lost, and no at-most-once
//! job starts twice. The nodes find the new primary by themselves, by the list of servers or through a proxy.

use crate::checks::check::Allowed;
use crate::setup::patroni::{MEMBERS, Patroni};
use crate::setup::place::Place;
use crate::tools::{asked, pause};
use crate::work::worker::Habit;
use crate::world::World;
use std::time::Duration;
use windlass::low_level::clock::Stopwatch;

/// How many jobs are acknowledged before and after each fault.
const JOBS: u64 = 100;
/// How long standbys are frozen while commits wait for them.
const FROZEN: Duration = Duration::from_secs(8);

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// `kill -9` of the primary's Postgres. Patroni starts it again or promotes another.
    ServerKilled,
    /// `kill -9` of all that runs on the primary's machine.
    MachineKilled,
    /// The operator makes another server the primary.
    SwitchedOver,
    /// All processes of the primary's machine stop, and go on after another leads.
    Frozen,
    /// Both standbys stop for a while: commits wait.
    StandbysFrozen,
    /// The primary's cable is pulled, and plugged in after another leads.
    CutOff,
}

const FAULTS: &[Fault] = &[
    Fault::ServerKilled,
    Fault::MachineKilled,
    Fault::SwitchedOver,
    Fault::Frozen,
    Fault::StandbysFrozen,
    Fault::CutOff,
];

impl Fault {
    fn strike(self, cluster: &mut Patroni, leader: usize) {
        let standbys = || (0..MEMBERS).filter(|member| *member != leader);
        match self {
            Self::ServerKilled => cluster.signal(leader, "-KILL", false),
            Self::MachineKilled => {
                cluster.signal(leader, "-KILL", true);
                cluster.wait_replaced(leader);
            }
            Self::SwitchedOver => {
                cluster.switch_over(leader);
                cluster.wait_replaced(leader);
            }
            Self::Frozen => {
                cluster.signal(leader, "-STOP", true);
                cluster.wait_replaced(leader);
            }
            Self::StandbysFrozen => {
                standbys().for_each(|member| cluster.signal(member, "-STOP", true));
                pause(FROZEN);
                standbys().for_each(|member| cluster.signal(member, "-CONT", true));
            }
            Self::CutOff => {
                cluster.cable(leader, false);
                cluster.wait_replaced(leader);
            }
        }
    }

    /// What was the primary takes part again.
    fn repair(self, cluster: &mut Patroni, leader: usize) {
        match self {
            Self::MachineKilled => cluster.revive(leader),
            Self::Frozen => cluster.signal(leader, "-CONT", true),
            Self::CutOff => cluster.cable(leader, true),
            Self::ServerKilled | Self::SwitchedOver | Self::StandbysFrozen => {}
        }
        cluster.wait_whole();
    }
}

fn survive(how: &str, store: &str, cluster: &mut Patroni) {
    let place = Place::postgres_at(store, &format!("{}&connect_timeout=3", cluster.url()));
    let world = World::start(&format!("Patroni, {how}"), place, 2, Habit::Lives);
    let nodes = world.fleet().process_ids();
    let (mut count, only) = (0, std::env::var("WINDLASS_TEST_FAULT").ok());
    for _ in 0..asked("PATRONI", 1) {
        for fault in FAULTS.iter().filter(|fault| only.as_ref().is_none_or(|only| *only == format!("{fault:?}"))) {
            world.load.wait_for_more(JOBS);
            let leader = cluster.leader().expect("the cluster is whole");
            world.shared.with_fault(|| fault.strike(cluster, leader));
            let over = Stopwatch::start();
            world.load.wait_for_more(JOBS);
            println!("{fault:?}: {JOBS} jobs acknowledged {:.1} s afterwards", over.elapsed().as_secs_f64());
            fault.repair(cluster, leader);
            count += 1;
        }
    }
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
    world.finish(&format!("{count} faults"), Allowed::NoLostAttempt);
}

#[test]
#[ignore = "part of the long torture; needs root, Patroni, etcd"]
fn patroni_clusters_fail_over_by_the_list_of_servers() {
    let mut cluster = Patroni::start();
    let store = cluster.url();
    survive("a list of servers", &store, &mut cluster);
}

#[test]
#[ignore = "part of the long torture; needs root, Patroni, etcd and HAProxy"]
fn patroni_clusters_fail_over_behind_a_proxy() {
    let mut cluster = Patroni::start();
    let store = cluster.proxy();
    survive("behind a proxy", &store, &mut cluster);
}
