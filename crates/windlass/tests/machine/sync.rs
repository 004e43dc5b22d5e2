//! A disk whose fsync fails: the commit may or may not have happened, and is never reported as done.

use crate::again::{again, assert_passes, home, task};
use crate::jobs::{count, job, put};
use std::process::Command;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::low_level::stores::{Atomicity, Options, StoreError};

/// Overrides the C library: syncs fail while a certain file exists.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int sync_by(const char *name, int fd) {
    const char *broken = getenv("WINDLASS_TEST_BROKEN");
    if (broken && access(broken, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return sync_by("fsync", fd); }
int fdatasync(int fd) { return sync_by("fdatasync", fd); }
"#;

#[test]
fn a_commit_whose_sync_fails_is_unknown_and_the_store_recovers_with_the_disk() {
    let home = home();
    let (source, shim) = (home.path().join("shim.c"), home.path().join("shim.so"));
    std::fs::write(&source, SHIM).unwrap();
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).arg("-ldl").status();
    assert!(compiled.expect("a C compiler, which SQLite needs too").success());
    let mut command = again("sync::works_on_a_disk_that_fails", home.path());
    command.env("LD_PRELOAD", &shim).env("WINDLASS_TEST_BROKEN", home.path().join("broken"));
    assert_passes(&mut command);
}

/// Not a test by itself: what the process on the failing disk does.
#[tokio::test]
async fn works_on_a_disk_that_fails() {
    let Some(home) = task() else { return };
    let path = home.join("jobs.db");
    let open = || SqliteStore::open(path.to_str().unwrap(), Options::default());
    let store = open().await.unwrap();
    put(&*store, 1).await;
    std::fs::write(home.join("broken"), "").unwrap();
    for _ in 0..3 {
        let stored = windlass::low_level::stores::JobLife::enqueue(&*store, vec![job()], Atomicity::Each).await;
        assert!(matches!(stored, Err(StoreError::Unknown(_))), "{stored:?}");
    }
    std::fs::remove_file(home.join("broken")).unwrap();
    put(&*store, 1).await;
    let there = count(&*store).await;
    assert!((2..=5).contains(&there), "{there} jobs: both that were acknowledged, perhaps the doubtful ones");
    drop(store);
    assert_eq!(count(&*open().await.unwrap()).await, there, "what the store reported is really stored");
}
