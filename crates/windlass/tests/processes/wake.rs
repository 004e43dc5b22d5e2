//! Wake-ups between processes: an idle worker whose next poll is an hour away finds a job at once.

use crate::child::{Mark, mark};
use crate::home::{HANG, Home};
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass::{JobId, State, Windlass, Worker};

const ROLE: &str = "WINDLASS_TEST_IDLE_WORKER";
/// Longer than any test waits: only a wake-up can explain that a job was found.
const POLL: Duration = Duration::from_secs(3600);
/// The first may be found because the worker has just started; the others not.
const ROUNDS: u32 = 4;

/// Not a test by itself: what the idle process does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_when_asked_to() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let home = Home::reported();
    let windlass = home.open().await;
    let worker = Worker::new(&windlass).handle(mark).state(home.marks()).queue("default", 4).poll(POLL);
    worker.run(std::future::pending::<()>()).await.unwrap();
}

fn start(home: &Home) -> tokio::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["wake::waits_when_asked_to", "--exact"]).env(ROLE, "yes").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    home.pass_to(&mut command);
    tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap()
}

async fn done(windlass: &Windlass, id: JobId) {
    let ended = tokio::time::timeout(HANG, windlass.wait(id)).await;
    let job = ended.expect("a wake-up reaches the idle worker").unwrap().unwrap();
    assert_eq!(job.state, State::Succeeded);
}

async fn an_idle_worker_finds_what_another_process_enqueues(home: Home) {
    let windlass = home.open().await;
    let _worker = start(&home);
    for n in 0..ROUNDS {
        let id = windlass.enqueue(Mark::new(n, 0)).await.unwrap();
        done(&windlass, id).await;
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_finds_what_another_process_enqueues_on_sqlite() {
    an_idle_worker_finds_what_another_process_enqueues(Home::sqlite()).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_finds_what_another_process_enqueues_on_postgres() {
    an_idle_worker_finds_what_another_process_enqueues(Home::postgres()).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_finds_what_psql_enqueues_and_wakes_it_for() {
    let home = Home::postgres();
    let windlass = home.open().await;
    let _worker = start(&home);
    for n in 0..ROUNDS {
        let enqueue = format!("SELECT {}.enqueue('mark', '{{\"n\":{n},\"pause_ms\":0}}')", home.schema());
        let wake = format!("SELECT {}.wake()", home.schema());
        let psql = Command::new("psql")
            .args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", &enqueue, "-c", &wake, home.url()])
            .output();
        let psql = psql.expect("psql is installed with the Postgres client tools");
        assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
        let id = String::from_utf8(psql.stdout).unwrap().trim().parse().unwrap();
        done(&windlass, JobId(id)).await;
    }
}
