//! The disk becomes read-only, as when the kernel remounts a failing one, and writable again. What cannot be stored is
//! refused; work resumes without help.

use crate::checks::check::Allowed;
use crate::client::Client;
use crate::setup::cluster::Cluster;
use crate::setup::faulty_disk::{DiskFault, FaultyDisk};
use crate::setup::place::Place;
use crate::tools::{asked, eventually, pause};
use crate::work::worker::{Habit, LEASE};
use crate::world::World;

/// How many jobs are acknowledged between two faults, to show that the fleet has recovered.
const JOBS: u64 = 100;
/// Larger than a page, so that it needs a new one: Postgres stores small rows in memory until its next checkpoint.
const PROBE: usize = 200_000;

fn remount(world: &World, disk: &FaultyDisk, cycles: u64) {
    let nodes = world.fleet().process_ids();
    // Text that does not compress.
    let text: String = (0..PROBE / 16).map(|_| format!("{:016x}", world.random.number())).collect();
    let probe = format!(r#"{{"kind":"probe","queue":"probe","payload":"{text}"}}"#);
    for cycle in 0..cycles {
        world.load.wait_for_more(JOBS);
        world.shared.with_fault(|| {
            disk.set(DiskFault::ReadOnly);
            let client = Client { address: world.fleet().address(0), token: None };
            let mut refused = None;
            eventually("a read-only disk refuses", || {
                let answer = client.post("/api/v1/jobs", &probe);
                let is_refused = answer.status != 201;
                refused = Some(answer);
                is_refused
            });
            let refused = refused.expect("it was asked").is(503);
            assert!(refused["detail"].is_string(), "{refused}");
            // Postgres opens files for writing even to read them.
            let read = client.get("/api/v1/jobs?limit=1").status;
            assert!(read == 200 || world.fleet().place.is_postgres() && read == 503, "{read}");
            if cycle % 2 == 1 {
                pause(LEASE * 2);
            }
            disk.repair(DiskFault::ReadOnly);
        });
    }
    world.load.wait_for_more(JOBS);
    let purged = world.fleet().call(&world.random, "POST", "/api/v1/queues/probe/purge", "");
    assert!(purged.is_some_and(|answer| answer.status == 200 || answer.status == 404));
    world.shared.history.record().purges += 1;
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
}

#[test]
fn sqlite_on_a_disk_that_becomes_read_only_loses_nothing_and_goes_on_when_it_is_writable() {
    let cycles = asked("CYCLES", 1);
    let disk = FaultyDisk::new();
    let mut place = Place::sqlite_at(&disk.path().join("jobs.db"));
    place.variables = disk.variables();
    let world = World::start("disk read-only", place, 1, Habit::Lives);
    remount(&world, &disk, cycles);
    world.finish(&format!("{cycles} times read-only"), Allowed::NoLostAttempt);
}

#[test]
fn postgres_on_a_disk_that_becomes_read_only_loses_nothing_and_goes_on_when_it_is_writable() {
    let cycles = asked("CYCLES", 1);
    let disk = FaultyDisk::new();
    let cluster = Cluster::start_beside(&disk);
    // The write-ahead log is on another disk: if it cannot be written, Postgres stops, which is a different test.
    cluster.sql(&format!("CREATE TABLESPACE faulty LOCATION '{}'", disk.path().display()));
    cluster.sql("CREATE DATABASE jobs TABLESPACE faulty");
    let url = cluster.url("jobs");
    let world = World::start("disk read-only", Place::postgres_at(&url, &url), 2, Habit::Lives);
    remount(&world, &disk, cycles);
    world.finish(&format!("{cycles} times read-only"), Allowed::NoLostAttempt);
}
