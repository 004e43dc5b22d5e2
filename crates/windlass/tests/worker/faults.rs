//! What happens when workers, processes and stores fail.

use crate::world::{LEASE, World, scenario};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass::testing::Fault;
use windlass::{Attempt, EventKind, Failure, JobKind, Millis, Reason, State};

/// Waits until it may continue, or for ever.
#[derive(Debug, Serialize, Deserialize)]
struct Wait;

impl JobKind for Wait {
    const KIND: &'static str = "wait";
}

async fn until_reported(_: Wait, attempt: Attempt) -> Result<(), Failure> {
    attempt.cancelled().await;
    Err(Failure::new("asked to stop"))
}

async fn at_once(_: Wait, _: Attempt) -> Result<(), Failure> {
    Ok(())
}

fn started(what: &EventKind) -> bool {
    matches!(what, EventKind::Started { .. })
}

scenario! {
    async fn the_jobs_of_a_lost_worker_are_found_and_the_lost_attempt_is_on_record(w: World) {
        let mut process = w.other_process();
        let lost = process.start(process.worker().handle(until_reported).id("w1"));
        let id = w.windlass.enqueue(Wait).retry("stepped").await.unwrap();
        process.event(id, started).await;
        process.kill(lost).await;
        let other = w.start(w.worker().handle(at_once).id("w2"));
        w.pass(LEASE + Millis::from_secs(10)).await;
        w.pass_retry(id).await;
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt, job.crashes), (State::Succeeded, 2, 0));
        let history = w.windlass.jobs().history(id).await.unwrap();
        assert_eq!((history[0].error_class.as_deref(), history[0].worker.as_str()), (Some("WorkerLost"), "w1"));
        other.stop().await;
    }

    async fn a_worker_that_restarts_under_its_id_frees_its_jobs_at_once(w: World) {
        let mut process = w.other_process();
        let lost = process.start(process.worker().handle(until_reported).id("w1"));
        let id = w.windlass.enqueue(Wait).retry("fixed:base=0,jitter=none").await.unwrap();
        process.event(id, started).await;
        process.kill(lost).await;
        let again = w.start(w.worker().handle(at_once).id("w1"));
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt), (State::Succeeded, 2));
        assert_eq!(w.windlass.jobs().history(id).await.unwrap()[0].error_class.as_deref(), Some("WorkerLost"));
        assert_eq!(w.clock.monotonic(), Millis::ZERO);
        again.stop().await;
    }

    async fn a_worker_whose_id_is_taken_frees_nothing(w: World) {
        let first = w.start(w.worker().handle(until_reported).id("w1"));
        let id = w.windlass.enqueue(Wait).await.unwrap();
        w.event(id, started).await;
        let second = w.start(w.worker().handle(at_once).id("w1").queue("other", 1));
        let other = w.windlass.enqueue(Wait).queue("other").await.unwrap();
        w.finished(other).await;
        assert_eq!(w.job(id).await.state, State::Running);
        let name = w.windlass.jobs().history(other).await.unwrap()[0].worker.clone();
        assert!(name.starts_with("w1-"), "{name}");
        w.windlass.jobs().cancel(id).await.unwrap();
        w.finished(id).await;
        first.stop().await;
        second.stop().await;
    }

    async fn an_outage_longer_than_a_lease_costs_no_job_an_attempt(w: World) {
        let worker = w.start(w.worker().handle(until_reported));
        let id = w.windlass.enqueue(Wait).await.unwrap();
        w.event(id, started).await;
        let other = w.other_process();
        let rival = other.start(other.worker().handle(at_once));
        w.pass(LEASE + LEASE).await;
        for process in [&w, &other] {
            process.faults.always(Fault::Unavailable);
        }
        w.pass(LEASE + LEASE + LEASE).await;
        for process in [&w, &other] {
            process.faults.always(Fault::None);
        }
        w.pass(LEASE + LEASE).await;
        let job = w.job(id).await;
        assert_eq!((job.state, job.attempt, job.crashes), (State::Running, 1, 0));
        w.windlass.jobs().cancel(id).await.unwrap();
        assert_eq!(w.finished(id).await.state, State::Cancelled);
        rival.stop().await;
        worker.stop().await;
    }

    async fn a_worker_that_starts_while_the_store_is_unavailable_waits_for_it(w: World) {
        let id = w.windlass.enqueue(Wait).await.unwrap();
        w.faults.always(Fault::Unavailable);
        let worker = w.start(w.worker().handle(at_once).id("w1"));
        let stopped = w.start(w.worker().handle(at_once).id("w2"));
        w.pass(LEASE).await;
        // A worker that is asked to stop meanwhile stops.
        stopped.stop().await;
        w.faults.always(Fault::None);
        w.pass_until_finished(id).await;
        assert_eq!(w.finished(id).await.attempt, 1);
        worker.stop().await;
    }

    async fn a_worker_cut_off_from_the_store_cannot_commit_once_reaped(w: World) {
        // The first worker's handler outlives its lease: only its own calls fail.
        let cut = Arc::new(AtomicU32::new(0));
        let seen = cut.clone();
        let handler = move |_: Wait, attempt: Attempt| {
            let seen = seen.clone();
            async move {
                if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                    attempt.cancelled().await;
                }
                Ok::<_, Failure>(attempt.number())
            }
        };
        let worker = w.start(w.worker().handle(handler));
        let id = w.windlass.enqueue(Wait).retry("fixed:base=0,jitter=none").await.unwrap();
        w.event(id, started).await;
        w.faults.choose(|call| if call == "renew" { Fault::Unavailable } else { Fault::None });
        w.reap_expired().await;
        w.faults.always(Fault::None);
        // The renewal finds the lease gone and asks the handler to stop. Its late success changes nothing.
        w.pass(LEASE).await;
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt, job.result.as_deref()), (State::Succeeded, 2, Some("2")));
        let history = w.windlass.jobs().history(id).await.unwrap();
        assert_eq!(history.len(), 2);
        assert_eq!(history[0].error_class.as_deref(), Some("WorkerLost"));
        worker.stop().await;
    }

    async fn a_claim_of_unknown_outcome_is_queried_and_run(w: World) {
        let once = AtomicU32::new(0);
        w.faults.choose(move |call| {
            let is_first = call == "claim" && once.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { Fault::UnknownDone } else { Fault::None }
        });
        let id = w.windlass.enqueue(Wait).await.unwrap();
        let worker = w.start(w.worker().handle(at_once));
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt), (State::Succeeded, 1));
        worker.stop().await;
    }

    async fn a_claim_that_happens_after_it_was_queried_costs_no_attempt(w: World) {
        let once = AtomicU32::new(0);
        w.faults.choose(move |call| {
            let is_first = call == "claim" && once.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { Fault::UnknownLate } else { Fault::None }
        });
        let id = w.windlass.enqueue(Wait).await.unwrap();
        let worker = w.start(w.worker().handle(at_once));
        w.pass_until_finished(id).await;
        let job = w.job(id).await;
        assert_eq!((job.state, job.attempt, job.crashes), (State::Succeeded, 1, 0));
        assert_eq!(w.windlass.jobs().history(id).await.unwrap().len(), 1);
        worker.stop().await;
    }

    async fn a_commit_of_unknown_outcome_is_repeated_and_counts_once(w: World) {
        for fault in [Fault::UnknownDone, Fault::UnknownNotDone, Fault::Unavailable] {
            let once = AtomicU32::new(0);
            w.faults.choose(move |call| {
                let is_first = call == "commit" && once.fetch_add(1, Ordering::SeqCst) == 0;
                if is_first { fault } else { Fault::None }
            });
            let mut worker = w.start(w.worker().handle(at_once));
            let id = w.windlass.enqueue(Wait).await.unwrap();
            w.pass_until_finished(id).await;
            let job = w.finished(id).await;
            assert_eq!((job.state, job.attempt), (State::Succeeded, 1), "{fault:?}");
            assert_eq!(w.windlass.jobs().history(id).await.unwrap().len(), 1, "{fault:?}");
            worker.ask_to_stop();
            w.pass_until_stopped(worker).await;
        }
    }

    async fn a_job_that_kills_its_process_is_quarantined_and_other_jobs_are_not(w: World) {
        // The killer comes first by priority; its neighbours are claimed with it.
        let killer = w.windlass.enqueue(Kill).priority(windlass::Priority::Highest).retry("fixed:base=0,jitter=none,retries=20").await.unwrap();
        let mut neighbours = Vec::new();
        for _ in 0..5 {
            neighbours.push(w.windlass.enqueue(Wait).retry("fixed:base=0,jitter=none,retries=2").await.unwrap());
        }
        for _ in 0..3 {
            let mut process = w.other_process();
            let worker = process.worker().handle(until_reported).handle(kill).id("w1").queue("default", 4);
            let doomed = process.start(worker);
            process.event(killer, started).await;
            process.kill(doomed).await;
        }
        let worker = w.start(w.worker().handle(at_once).handle(kill).id("w1"));
        let job = w.finished(killer).await;
        assert_eq!((job.state, job.reason, job.crashes), (State::Failed, Some(Reason::CrashLoop), 3));
        for id in neighbours {
            let job = w.finished(id).await;
            assert_eq!(job.state, State::Succeeded, "{:?}", w.windlass.jobs().history(id).await);
        }
        worker.stop().await;
    }
}

/// Simulates a job that kills its process: the test kills the worker when the job starts.
#[derive(Debug, Serialize, Deserialize)]
struct Kill;

impl JobKind for Kill {
    const KIND: &'static str = "kill";
}

async fn kill(_: Kill, _: Attempt) -> Result<(), Failure> {
    std::future::pending().await
}
