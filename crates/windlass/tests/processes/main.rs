//! Real processes on one store: killed, stopped, competing. Each test starts this binary again as its workers.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod child;
mod home;
mod wake;

use child::{Bad, Child, Crash, Hog, Mark};
use home::Home;
use std::collections::HashMap;
use std::time::Duration;
use windlass::core::Attempt as Line;
use windlass::{JobId, Reason, State, Worker};

/// Retries at once: the test is about finding lost jobs, not about backoff.
const AT_ONCE: &str = "fixed:base=0,jitter=none,retries=20";

/// A few retries at once; some may be lost to what happens to the process.
const FEW: &str = "fixed:base=0,jitter=none,retries=4";

async fn a_killed_workers_jobs_all_get_done_and_the_lost_attempts_are_on_record(home: Home) {
    let windlass = home.open().await;
    let mut ids = Vec::new();
    for n in 0..30 {
        // Some of them run for certain when the worker is killed.
        let job = if n < 2 { Mark::held(n) } else { Mark::new(n, 30) };
        ids.push(windlass.enqueue(job).retry(AT_ONCE).await.unwrap());
    }
    let doomed = Child::start(&home, "w1");
    home.wait_for_marks(5).await;
    doomed.kill();
    let again = Child::start(&home, "w1");
    let mut lost = 0;
    for id in ids {
        let job = windlass.wait(id).await.unwrap().unwrap();
        let history = windlass.jobs().history(id).await.unwrap();
        assert_eq!(job.state, State::Succeeded, "{history:?}");
        let numbers: Vec<u32> = history.iter().map(|line| line.number).collect();
        assert_eq!(numbers, (1..=job.attempt).collect::<Vec<u32>>(), "attempts are numbered without gaps");
        let is_lost = |line: &&Line| line.error_class.as_deref() == Some("WorkerLost");
        assert_eq!(history.iter().filter(is_lost).count() + 1, history.len());
        lost += history.len() - 1;
    }
    assert!(lost > 0, "the worker was killed in the middle of a job");
    again.stop();
}

async fn a_worker_stopped_past_its_lease_cannot_commit_when_it_continues(home: Home) {
    let windlass = home.open().await;
    let frozen = Child::start(&home, "w1");
    let id = windlass.enqueue(Mark::held(1)).retry(AT_ONCE).await.unwrap();
    home.wait_for_marks(1).await;
    frozen.freeze().await;
    // This process finds the lease run out and does the job itself.
    let rescuer = async {
        Worker::new(&windlass)
            .handle(child::mark)
            .state(home.marks())
            .lease(Duration::from_secs(1))
            .id("w2")
            .run(async { drop(windlass.wait(id).await) })
            .await
    };
    rescuer.await.unwrap();
    let before = windlass.jobs().history(id).await.unwrap();
    home.release_held();
    frozen.signal("CONT");
    // It has seen its outcome refused when it can do another job.
    let next = windlass.enqueue(Mark::new(2, 0)).await.unwrap();
    assert_eq!(windlass.wait(next).await.unwrap().unwrap().state, State::Succeeded);
    frozen.stop();
    let history = windlass.jobs().history(id).await.unwrap();
    assert_eq!(history, before);
    let reported: Vec<(Option<&str>, &str)> =
        history.iter().map(|line| (line.error_class.as_deref(), line.worker.as_str())).collect();
    assert_eq!(reported, [(Some("WorkerLost"), "w1"), (None, "w2")]);
}

async fn two_processes_share_a_queue_without_double_execution(home: Home) {
    let windlass = home.open().await;
    let workers = [Child::start(&home, "w1"), Child::start(&home, "w2")];
    // Each holds one job for as long as the other is not up.
    let first = windlass.enqueue_many([0, 1, 2, 3, 4, 5, 6, 7].map(Mark::held)).await.unwrap();
    home.wait_for_marks(8).await;
    home.release_held();
    let jobs = (8..400).map(|n| Mark::new(n, 5));
    let ids = [first, windlass.enqueue_many(jobs).await.unwrap()].concat();
    let mut done_by: HashMap<String, u32> = HashMap::new();
    for id in ids {
        assert_eq!(windlass.wait(id).await.unwrap().unwrap().attempt, 1);
        *done_by.entry(windlass.jobs().history(id).await.unwrap()[0].worker.clone()).or_default() += 1;
    }
    for worker in workers {
        worker.stop();
    }
    let mut marks = home.read_marks();
    marks.sort_unstable();
    assert_eq!(marks, (0..400).collect::<Vec<u32>>(), "each job ran once");
    assert!(done_by.len() == 2, "both did some: {done_by:?}");
}

async fn jobs_that_kill_their_process_are_quarantined_and_other_jobs_are_not(home: Home) {
    let windlass = home.open().await;
    // One kills its process directly, the other by using all its memory.
    let poison = [
        windlass.enqueue(Crash).retry(AT_ONCE).await.unwrap(),
        windlass.enqueue(Hog).retry(AT_ONCE).await.unwrap(),
        windlass.enqueue(Crash).retry(AT_ONCE).await.unwrap(),
    ];
    let panics = windlass.enqueue(Bad::Panics).retry(FEW).await.unwrap();
    let hangs = windlass.enqueue(Bad::Hangs).retry(FEW).timeout(Duration::from_millis(200)).await.unwrap();
    let mut neighbours: Vec<JobId> = Vec::new();
    for n in 0..20 {
        neighbours.push(windlass.enqueue(Mark::new(n, 20)).retry(AT_ONCE).await.unwrap());
    }
    let mut restarts = 0;
    let mut worker = Child::start(&home, "w1");
    for id in poison {
        let job = loop {
            tokio::select! {
                () = worker.ended() => {
                    restarts += 1;
                    assert!(restarts <= 20, "the jobs are not quarantined");
                    worker = Child::start(&home, "w1");
                }
                job = windlass.wait(id) => break job.unwrap().unwrap(),
            }
        };
        assert_eq!(
            (job.state, job.reason),
            (State::Failed, Some(Reason::CrashLoop)),
            "{:?}",
            windlass.jobs().history(id).await
        );
    }
    for id in neighbours {
        let job = windlass.wait(id).await.unwrap().unwrap();
        assert_eq!(job.state, State::Succeeded, "{:?}", windlass.jobs().history(id).await);
    }
    for (id, class) in [(panics, "Panic"), (hangs, "Timeout")] {
        let job = windlass.wait(id).await.unwrap().unwrap();
        let history = windlass.jobs().history(id).await.unwrap();
        assert_eq!((job.state, job.reason), (State::Failed, Some(Reason::Exhausted)), "{history:?}");
        assert!(history.iter().any(|line| line.error_class.as_deref() == Some(class)), "{history:?}");
    }
    worker.stop();
}

macro_rules! on_stores {
    ($($name:ident)+) => {
        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let test = super::$name(super::Home::sqlite());
                tokio::time::timeout(5 * super::home::HANG, test).await.expect("the test ends");
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let test = super::$name(super::Home::postgres());
                tokio::time::timeout(5 * super::home::HANG, test).await.expect("the test ends");
            })+
        }
    };
}
on_stores! {
    a_killed_workers_jobs_all_get_done_and_the_lost_attempts_are_on_record
    a_worker_stopped_past_its_lease_cannot_commit_when_it_continues
    two_processes_share_a_queue_without_double_execution
    jobs_that_kill_their_process_are_quarantined_and_other_jobs_are_not
}
