//! The worker process: this test binary, started again with a task in its environment.

use crate::home::{Home, Marks};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass::{Attempt, Failure, JobKind, Worker};

const ROLE: &str = "WINDLASS_TEST_WORKER";

/// Leaves a mark outside the store, then runs for a while.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) n: u32,
    pub(crate) pause_ms: u64,
    /// The first attempt does not end before the test lets it.
    #[serde(default)]
    pub(crate) is_held: bool,
}

impl Mark {
    pub(crate) fn new(n: u32, pause_ms: u64) -> Self {
        Self { n, pause_ms, is_held: false }
    }

    pub(crate) fn held(n: u32) -> Self {
        Self { n, pause_ms: 0, is_held: true }
    }
}

impl JobKind for Mark {
    const KIND: &'static str = "mark";
}

pub(crate) async fn mark(job: Mark, attempt: Attempt) -> Result<(), Failure> {
    let marks = attempt.state::<Marks>();
    marks.add(job.n);
    while job.is_held && attempt.number() == 1 && !marks.is_released() {
        attempt.sleep(Duration::from_millis(5)).await;
    }
    attempt.sleep(Duration::from_millis(job.pause_ms)).await;
    Ok(())
}

/// Kills its process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Crash;

impl JobKind for Crash {
    const KIND: &'static str = "crash";
}

async fn crash(_: Crash, _: Attempt) -> Result<(), Failure> {
    std::process::abort()
}

/// Takes memory until there is no more.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hog;

impl JobKind for Hog {
    const KIND: &'static str = "hog";
}

async fn hog(_: Hog, _: Attempt) -> Result<(), Failure> {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(vec![0; 64 << 20]);
    }
}

/// Panics, or never ends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Bad {
    Panics,
    Hangs,
}

impl JobKind for Bad {
    const KIND: &'static str = "bad";
}

async fn be_bad(job: Bad, _: Attempt) -> Result<(), Failure> {
    match job {
        Bad::Panics => panic!("on purpose"),
        Bad::Hangs => std::future::pending().await,
    }
}

/// A worker in a process of its own. Ends with its test, whatever happens.
pub(crate) struct Child(tokio::process::Child);

impl Child {
    pub(crate) fn start(home: &Home, id: &str) -> Self {
        // So little memory that a job which uses it all soon ends the process, as the system would.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        command.args(["child::works_when_asked_to", "--exact", "--nocapture"]).env(ROLE, id).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        home.pass_to(&mut command);
        Self(tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap())
    }

    /// SIGKILL: the process cannot clean up.
    pub(crate) fn kill(mut self) {
        self.0.start_kill().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().expect("the process runs").to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// SIGSTOP, at a moment when the process holds no lock of a SQLite file: nobody could write until it continues.
    pub(crate) async fn freeze(&self) {
        let mut again = tokio::time::interval(Duration::from_millis(5));
        loop {
            self.signal("STOP");
            while !self.is_frozen() {
                again.tick().await;
            }
            if !self.locks_a_file() {
                return;
            }
            self.signal("CONT");
            again.tick().await;
        }
    }

    /// Whether all its threads have stopped: one that writes finishes its call first.
    fn is_frozen(&self) -> bool {
        let pid = self.0.id().expect("the process runs");
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default()).all(
            |stat| {
                let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
                state == Some("T")
            },
        )
    }

    fn locks_a_file(&self) -> bool {
        let pid = self.0.id().expect("the process runs").to_string();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .any(|lock| matches!(lock[..], [_, "POSIX", _, "WRITE", holder, ..] if holder == pid))
    }

    /// Waits until the process is gone.
    pub(crate) async fn ended(&mut self) {
        let _ = self.0.wait().await;
    }

    pub(crate) fn stop(self) {
        drop(self);
    }
}

/// Not a test by itself: what a child process does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_when_asked_to() {
    let Ok(id) = std::env::var(ROLE) else { return };
    let home = Home::reported();
    let windlass = home.open().await;
    let marks = home.marks();
    let worker = Worker::new(&windlass)
        .handle(mark)
        .handle(crash)
        .handle(hog)
        .handle(be_bad)
        .state(marks)
        .id(id)
        .queue("default", 4);
    worker.lease(Duration::from_secs(1)).run(std::future::pending::<()>()).await.unwrap();
}
