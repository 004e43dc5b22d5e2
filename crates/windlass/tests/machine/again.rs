//! This binary, started again for one of its tests: on a small file system, or with another environment.

use std::fs::{File, Permissions, set_permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Tells the process started again what it is for; without it, the tests meant for it do nothing.
const TASK: &str = "WINDLASS_TEST_TASK";
const BALLAST: &str = "ballast";

/// The task this process was started for, if it was.
pub fn task() -> Option<PathBuf> {
    std::env::var_os(TASK).map(PathBuf::from)
}

/// A command that runs one test of this binary with a task.
pub fn again(test: &str, task: &Path) -> Command {
    rerun(Command::new(std::env::current_exe().unwrap()), test, task)
}

fn rerun(mut command: Command, test: &str, task: &Path) -> Command {
    command.args([test, "--exact", "--nocapture"]).env(TASK, task);
    command
}

#[track_caller]
pub fn assert_passes(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{command:?}: {}\n{out}\n{err}", output.status);
}

/// Runs one test of this binary on a file system in memory that is as large as `size` says. It exists only in that
/// process: root may mount it directly, other users in a user namespace.
#[track_caller]
pub fn on_small_disk(test: &str, size: &str) {
    let place = home();
    let mut command = Command::new("unshare");
    if is_root() {
        command.arg("--mount");
    } else {
        command.args(["--user", "--map-root-user", "--mount"]);
    }
    let mount = r#"mount -t tmpfs -o "size=$1,mode=0777" windlass-test "$2" && shift 2 && exec "$@""#;
    command.args(["sh", "-c", mount, "sh", size]).arg(place.path());
    if !is_root() {
        // Postgres refuses to run as root, even as the root of a user namespace.
        command.args(["unshare", "--user"]);
    }
    command.arg(std::env::current_exe().unwrap());
    assert_passes(&mut rerun(command, test, place.path()));
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A temporary directory that servers under another user can read.
pub fn home() -> TempDir {
    let home = tempfile::Builder::new().prefix("windlass-machine.").tempdir_in("/tmp").unwrap();
    set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    home
}

/// Takes all the room that a disk has left.
pub fn fill(disk: &Path) {
    let mut ballast = File::create(disk.join(BALLAST)).unwrap();
    for block in [65_536, 4096, 1] {
        while ballast.write_all(&vec![7; block]).is_ok() {}
    }
}

pub fn free(disk: &Path) {
    std::fs::remove_file(disk.join(BALLAST)).unwrap();
}
