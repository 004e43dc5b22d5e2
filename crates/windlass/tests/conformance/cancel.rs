use super::world;
use crate::world::*;
use windlass::core::{JobId, Millis, Outcome, Progress, State};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{Cancelled, Committed, JobFilter, Scope, WorkerId};
use windlass::core::Delivery;

#[tokio::test]
async fn a_waiting_job_ends_at_once() {
    let w = world().await;
    let queued = w.put(job()).await;
    let retrying = w.put(job_in("other")).await;
    let running = w.claim(&["other"], 1).await.jobs.remove(0);
    w.fail(&running).await;
    assert_eq!(w.store.cancel(&Scope::All, vec![queued, retrying]).await.unwrap(), [Cancelled::Now, Cancelled::Now]);
    for id in [queued, retrying] {
        let job = w.get(id).await;
        assert_eq!((job.state, job.finished_at), (State::Cancelled, Some(START)));
    }
    w.advance(Millis::from_secs(60));
    assert!(w.claim(&["default", "other"], 5).await.jobs.is_empty());
    assert_eq!(w.ledger(retrying).await.len(), 1, "its ledger moved to the archive too");
    assert!(w.ledger(queued).await.is_empty(), "it had no attempt");
}

#[tokio::test]
async fn a_running_job_is_asked_to_stop_and_ends_cancelled_unless_it_succeeds() {
    let w = world().await;
    let stored = w.put_all((0..5).map(|_| job()).collect()).await;
    let jobs = w.claim(&["default"], 5).await.jobs;
    let answers = w.store.cancel(&Scope::All, stored.clone()).await.unwrap();
    assert!(answers.iter().all(|a| *a == Cancelled::Requested));
    assert!(w.get(stored[0]).await.cancel_requested);
    let lease = jobs[0].lease;
    let mut asked = w.store.renew(&WorkerId::new("w1"), vec![lease], LEASE).await.unwrap().cancel_requested;
    asked.sort();
    assert_eq!(asked, stored);
    // The worker decided before it knew of the cancel. It must decide again.
    assert_eq!(w.fail(&jobs[0]).await, Committed::CancelRequested);
    assert_eq!(w.get(stored[0]).await.state, State::Running);
    let knowing = |i: usize| jobs[i].with_cancel_requested();
    assert_applied(&w.fail(&knowing(0)).await);
    assert_applied(&w.succeed(&jobs[1]).await);
    let mut asked = w.store.renew(&WorkerId::new("w1"), vec![lease], LEASE).await.unwrap().cancel_requested;
    asked.sort();
    assert_eq!(asked, stored[2..], "those that have ended are not asked again");
    assert_applied(&w.commit(&knowing(2), Outcome::Snoozed(SECOND)).await);
    assert_applied(&w.commit(&knowing(3), Outcome::Released(Progress::Started)).await);
    w.advance(LEASE + SECOND);
    w.reap().await;
    let mut states = Vec::new();
    for id in stored {
        states.push(w.get(id).await.state);
    }
    let cancelled = State::Cancelled;
    assert_eq!(states, [cancelled, State::Succeeded, cancelled, cancelled, cancelled]);
}

#[tokio::test]
async fn an_at_most_once_job_that_fails_after_a_cancel_is_cancelled() {
    let w = world().await;
    let id = w.put(NewJob { delivery: Delivery::AtMostOnce, ..job() }).await;
    let running = w.claim_one().await;
    w.store.cancel(&Scope::All, vec![id]).await.unwrap();
    assert_eq!(w.fail(&running).await, Committed::CancelRequested);
}

#[tokio::test]
async fn finished_and_foreign_jobs_are_not_changed() {
    let w = world().await;
    let done = w.put(job()).await;
    w.succeed(&w.claim_one().await).await;
    let foreign = w.put(NewJob { tenant: tenant("acme"), ..job() }).await;
    let scope = Scope::Tenant(tenant("default"));
    let answers = w.store.cancel(&scope, vec![done, foreign, JobId(999_999), done]).await.unwrap();
    let finished = Cancelled::Finished(State::Succeeded);
    assert_eq!(answers, [finished, Cancelled::NotFound, Cancelled::NotFound, finished]);
    assert_eq!(w.get(foreign).await.state, State::Queued);
}

#[tokio::test]
async fn a_lease_stays_while_one_of_its_jobs_must_be_decided_again() {
    let w = world().await;
    let [asked, other] = w.put_all(vec![job(), job()]).await[..] else { unreachable!("two were stored") };
    let jobs = w.claim(&["default"], 2).await.jobs;
    let lease = jobs[0].lease;
    w.store.cancel(&Scope::All, vec![asked]).await.unwrap();
    // The worker believes that these are the lease's last jobs. It does not know of the cancel.
    let commits = jobs.iter().map(|job| w.commit_of(job, &failed("boom"))).collect();
    let answers = w.store.commit(commits, vec![lease]).await.unwrap();
    assert_eq!(answers[0], Committed::CancelRequested);
    assert_applied(&answers[1]);
    assert_eq!(w.get(other).await.state, State::Retrying);
    let renewed = w.store.renew(&WorkerId::new("w1"), vec![lease], LEASE).await.unwrap();
    assert_eq!((renewed.lost, renewed.cancel_requested), (vec![], vec![asked]));
    // If the worker dies now, the job is found and ends as cancelled.
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 1);
    assert_eq!(w.get(asked).await.state, State::Cancelled);
}

#[tokio::test]
async fn a_job_that_is_cancelled_between_attempts_is_listed_once() {
    let w = world().await;
    let id = w.put(job()).await;
    for _ in 0..2 {
        assert_applied(&w.fail(&w.claim_one().await).await);
        w.advance(Millis::from_secs(10));
    }
    assert_eq!(w.store.cancel(&Scope::All, vec![id]).await.unwrap(), [Cancelled::Now]);
    assert_eq!(w.list(JobFilter::default()).await, [id]);
    assert_eq!(w.ledger(id).await.len(), 2);
}
