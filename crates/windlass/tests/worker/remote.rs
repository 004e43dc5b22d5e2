//! Remote workers: what they may take and change, and what happens to jobs that nobody received.

use crate::world::{LEASE, World, scenario};
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass::core::Status;
use windlass::core::job::{QueueName, Tenant};
use windlass::low_level::job::{ClaimedJob, LeaseId};
use windlass::remote::{Answer, AttemptResult, HeldAttempt, Remote, RemoteWorker, TakeRequest, WorkScope};
use windlass::testing::Fault;
use windlass::{Failure, JobId, Millis, Outcome, State};

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).unwrap()
}

fn of(name: &str) -> WorkScope {
    WorkScope::of(tenant(name))
}

fn request(scope: WorkScope, max: u32) -> TakeRequest {
    let worker = RemoteWorker::new("w1", scope);
    TakeRequest { worker, queues: Vec::new(), kinds: None, max, wait: Millis::ZERO, lease_for: LEASE }
}

async fn enqueue(w: &World, owner: &str, queue: &str) -> JobId {
    let job = w.windlass.enqueue_kind("any", &serde_json::json!({}));
    job.tenant(owner).queue(queue).retry("fixed:base=1s,jitter=none,retries=3").await.unwrap()
}

async fn take(remote: &Remote, scope: WorkScope, max: u32) -> Vec<ClaimedJob> {
    remote.take(request(scope, max)).await.unwrap()
}

fn held(job: &ClaimedJob) -> HeldAttempt {
    HeldAttempt { job: job.id, attempt: job.attempt, lease: job.lease }
}

async fn finish(remote: &Remote, scope: WorkScope, job: &ClaimedJob, outcome: Outcome) -> Answer {
    let result = AttemptResult { held: held(job), outcome, note: None, result: None };
    remote.finish(&RemoteWorker::new("w1", scope), &[result]).await.unwrap()[0]
}

async fn extend(remote: &Remote, scope: WorkScope, job: &ClaimedJob) -> Answer {
    remote.extend(&RemoteWorker::new("w1", scope), &[held(job)], LEASE).await.unwrap()[0]
}

fn failed() -> Outcome {
    Outcome::Failed(Failure::new("boom"))
}

scenario! {
    async fn a_scope_limits_what_is_taken(w: World) {
        let remote = w.windlass.remote();
        let (ours, sms) = (enqueue(&w, "ours", "email").await, enqueue(&w, "ours", "sms").await);
        let theirs = enqueue(&w, "theirs", "email").await;
        assert!(take(&remote, of("nobody"), 10).await.is_empty());
        let email = vec![QueueName::new("email").unwrap()];
        let limited = WorkScope { tenant: Some(tenant("ours")), queues: Some(email) };
        let ids = |jobs: Vec<ClaimedJob>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
        assert_eq!(ids(take(&remote, limited, 10).await), [ours]);
        assert_eq!(ids(take(&remote, of("ours"), 10).await), [sms]);
        assert_eq!(ids(take(&remote, WorkScope::all(), 10).await), [theirs]);
    }

    async fn a_foreign_lease_is_stale_and_nothing_changes(w: World) {
        // Another process has no copy of what this one handed out: it asks the store.
        for remote in [w.windlass.remote(), w.other_process().windlass.remote()] {
            let id = enqueue(&w, "ours", "email").await;
            let job = take(&w.windlass.remote(), of("ours"), 1).await.remove(0);
            assert_eq!(job.id, id);
            for foreign in [of("theirs"), WorkScope { tenant: None, queues: Some(Vec::new()) }] {
                assert_eq!(extend(&remote, foreign.clone(), &job).await, Answer::Stale);
                for outcome in [Outcome::Succeeded, failed(), Outcome::Cancelled] {
                    assert_eq!(finish(&remote, foreign.clone(), &job, outcome).await, Answer::Stale);
                }
            }
            assert_eq!((w.job(id).await.state, w.job(id).await.attempt), (State::Running, 1));
            assert_eq!(extend(&remote, of("ours"), &job).await, Answer::Ok);
            assert_eq!(finish(&remote, of("ours"), &job, Outcome::Succeeded).await, Answer::Ok);
            assert_eq!(finish(&remote, of("ours"), &job, Outcome::Succeeded).await, Answer::Ok, "repeated");
            assert_eq!(finish(&remote, of("theirs"), &job, Outcome::Succeeded).await, Answer::Stale);
            assert_eq!(w.job(id).await.state, State::Succeeded);
            assert_eq!(&*w.windlass.jobs().history(id).await.unwrap()[0].worker, "ours/w1");
        }
    }

    async fn a_foreign_renewal_does_not_keep_a_lease(w: World) {
        let remote = w.windlass.remote();
        let id = enqueue(&w, "ours", "email").await;
        let job = take(&remote, of("ours"), 1).await.remove(0);
        w.clock.advance(Millis::from_secs(20));
        assert_eq!(extend(&remote, of("theirs"), &job).await, Answer::Stale);
        // Ten seconds later the lease is over, so it was not renewed.
        w.clock.advance(Millis::from_secs(11));
        let spared = windlass::low_level::stores::Spared::none();
        let reaped = w.windlass.store().reap(windlass::low_level::stores::Reap::Expired { spared }, 10).await.unwrap();
        assert_eq!(reaped.iter().map(|lost| lost.job.id).collect::<Vec<_>>(), [id]);
        assert_eq!(extend(&remote, of("ours"), &job).await, Answer::Stale, "it was reaped");
    }

    async fn a_node_that_finds_the_store_later_than_another_costs_no_job_an_attempt(w: World) {
        let short = Millis::from_secs(3);
        let keeper = w.start(w.worker().queue("nothing", 1));
        w.pass(LEASE).await;
        let late = w.other_process();
        let id = enqueue(&w, "ours", "email").await;
        let taken = TakeRequest { lease_for: short, ..request(of("ours"), 1) };
        let job = late.windlass.remote().take(taken).await.unwrap().remove(0);
        for process in [&w, &late] {
            process.faults.always(Fault::Unavailable);
        }
        w.pass(short).await;
        w.faults.always(Fault::None);
        // A request of the remote worker waits at the other node until that one has found the store, too.
        w.pass(w.windlass.store().notice_time()).await;
        late.faults.always(Fault::None);
        w.pass(Millis::from_secs(1)).await;
        assert_eq!(extend(&late.windlass.remote(), of("ours"), &job).await, Answer::Ok);
        // A worker that is gone is found all the same.
        w.pass(LEASE + short + w.windlass.store().notice_time()).await;
        assert_eq!(w.job(id).await.crashes, 1);
        keeper.stop().await;
    }

    async fn a_late_cancel_is_decided_again(w: World) {
        let remote = w.windlass.remote();
        let id = enqueue(&w, "ours", "email").await;
        let job = take(&remote, of("ours"), 1).await.remove(0);
        w.windlass.jobs().cancel(id).await.unwrap();
        assert_eq!(extend(&remote, of("ours"), &job).await, Answer::Cancel);
        assert_eq!(finish(&remote, of("ours"), &job, failed()).await, Answer::Ok);
        assert_eq!(w.job(id).await.state, State::Cancelled);
        assert!(w.windlass.store().held(vec![job.lease]).await.unwrap().is_empty());
        let renewed = w.windlass.store().renew(&RemoteWorker::new("w1", of("ours")).id(), vec![job.lease], LEASE).await;
        assert_eq!(renewed.unwrap().lost, [job.lease], "its lease has ended");
    }

    async fn jobs_that_nobody_received_are_given_back(w: World) {
        let remote = w.windlass.remote();
        let id = enqueue(&w, "ours", "email").await;
        let is_claiming = Arc::new(AtomicBool::new(false));
        let seen = is_claiming.clone();
        w.faults.choose(move |call| {
            seen.fetch_or(call == "claim", Ordering::AcqRel);
            Fault::None
        });
        let mut take = Box::pin(remote.take(request(of("ours"), 1)));
        while !is_claiming.load(Ordering::Acquire) {
            assert!((&mut take).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        // The client is gone, while its claim is under way or its answer on its way back.
        drop(take);
        remote.stop();
        remote.drained().await;
        w.until("the job is given back", async || w.job(id).await.state == State::Queued).await;
        let line = &w.windlass.jobs().history(id).await.unwrap()[0];
        assert_eq!((line.status, w.job(id).await.failures), (Status::Released, 0));
    }

    async fn a_stopped_server_ends_waits(w: World) {
        let remote = w.windlass.remote();
        let mut waiting = request(WorkScope::all(), 1);
        waiting.wait = Millis::from_secs(60);
        let (stopper, taken) = (remote.clone(), remote.take(waiting));
        let stop = async {
            tokio::task::yield_now().await;
            stopper.stop();
        };
        let (taken, ()) = tokio::join!(taken, stop);
        assert!(taken.unwrap().is_empty());
        remote.drained().await;
    }

    async fn an_unknown_lease_is_stale(w: World) {
        let remote = w.windlass.remote();
        let id = enqueue(&w, "ours", "email").await;
        let job = take(&remote, WorkScope::all(), 1).await.remove(0);
        let wrong = ClaimedJob { lease: LeaseId(5), ..job.clone() };
        for scope in [WorkScope::all(), of("ours")] {
            assert_eq!(extend(&remote, scope.clone(), &wrong).await, Answer::Stale);
            assert_eq!(finish(&remote, scope, &wrong, Outcome::Succeeded).await, Answer::Stale);
        }
        assert_eq!(w.job(id).await.state, State::Running);
    }
}
