//! The disk fills up and is freed again: what cannot be stored is refused, and work resumes without help.

use crate::checks::check::Allowed;
use crate::setup::cluster::Cluster;
use crate::setup::place::Place;
use crate::tools::{asked, eventually, pause};
use crate::work::worker::{Habit, LEASE};
use crate::world::World;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many jobs are acknowledged between two faults, to show that the fleet has recovered.
const JOBS: u64 = 100;
/// The size of the small disk in MiB per cycle: the load alone must not fill it.
const SIZE: u64 = 64;

/// A separate file system, small enough to be filled. Only root can mount one; for other users, a limit on the size of
/// the nodes' files replaces it.
#[derive(Debug)]
enum Disk {
    Mounted(tempfile::TempDir),
    Limited(tempfile::TempDir),
}

impl Disk {
    fn new(cycles: u64) -> Self {
        let dir = tempfile::Builder::new().prefix("windlass-disk.").tempdir_in("/tmp").unwrap();
        let size = format!("size={}m", SIZE * (cycles + 1));
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path()).output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Self::Mounted(dir);
        }
        println!("no small disk can be mounted here: a limit on the size of files is used instead");
        Self::Limited(dir)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Mounted(dir) | Self::Limited(dir) => dir.path(),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    fn fill(&self, nodes: &[u32]) {
        match self {
            Self::Mounted(_) => {
                let mut ballast = std::fs::File::create(self.ballast()).unwrap();
                let block = vec![0; 65_536];
                while ballast.write_all(&block).is_ok() {}
                while ballast.write_all(&[0]).is_ok() {}
            }
            Self::Limited(_) => limit(nodes, "4096"),
        }
    }

    fn free(&self, nodes: &[u32]) {
        match self {
            Self::Mounted(_) => std::fs::remove_file(self.ballast()).unwrap(),
            Self::Limited(_) => limit(nodes, "unlimited"),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Self::Mounted(dir) = self {
            let _ = Command::new("umount").arg("-l").arg(dir.path()).status();
        }
    }
}

/// Sets the size of the largest file that these processes may write; it can be raised later.
fn limit(nodes: &[u32], bytes: &str) {
    for node in nodes {
        let words = ["--pid", &node.to_string(), &format!("--fsize={bytes}:")];
        assert!(Command::new("prlimit").args(words).status().expect("prlimit is there").success());
    }
}

fn fill_and_free(world: &World, disk: &Disk, cycles: u64) {
    let nodes = world.fleet().process_ids();
    for cycle in 0..cycles {
        world.load.wait_for_more(JOBS);
        world.shared.with_fault(|| {
            disk.fill(&nodes);
            let job = r#"{"kind":"probe","queue":"probe"}"#;
            eventually("a full disk refuses", || {
                world.fleet().call(&world.random, "POST", "/api/v1/jobs", job).is_none()
            });
            let read = world.fleet().call(&world.random, "GET", "/api/v1/jobs?limit=1", "");
            assert_eq!(read.map(|answer| answer.status), Some(200), "stored data can be read");
            if cycle % 2 == 1 {
                pause(LEASE * 2);
            }
            disk.free(&nodes);
        });
    }
    world.load.wait_for_more(JOBS);
    let purged = world.fleet().call(&world.random, "POST", "/api/v1/queues/probe/purge", "");
    assert!(purged.is_some_and(|answer| answer.status == 200 || answer.status == 404));
    world.shared.history.record().purges += 1;
    assert_eq!(world.fleet().process_ids(), nodes, "no node was restarted");
}

#[test]
fn sqlite_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let cycles = 2 * asked("CYCLES", 1);
    let disk = Disk::new(cycles);
    let mut place = Place::sqlite_at(&disk.path().join("jobs.db"));
    place.survives_limits = matches!(disk, Disk::Limited(_));
    let world = World::start("disk full", place, 1, Habit::Lives);
    fill_and_free(&world, &disk, cycles);
    world.finish(&format!("{cycles} times full"), Allowed::NoLostAttempt);
}

#[test]
fn postgres_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let cycles = 2 * asked("CYCLES", 1);
    let disk = Disk::new(cycles);
    assert!(
        matches!(disk, Disk::Mounted(_)),
        "this test mounts a small disk for a table space: run it as root, or without this one"
    );
    let cluster = Cluster::start();
    let space = disk.path().join("space");
    std::fs::create_dir(&space).unwrap();
    cluster.give(disk.path());
    // The write-ahead log is on another disk: without space for it Postgres itself stops, which is a different test.
    cluster.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", space.display()));
    cluster.sql("CREATE DATABASE jobs TABLESPACE small");
    let url = cluster.url("jobs");
    let world = World::start("disk full", Place::postgres_at(&url, &url), 2, Habit::Lives);
    fill_and_free(&world, &disk, cycles);
    world.finish(&format!("{cycles} times full"), Allowed::NoLostAttempt);
}
