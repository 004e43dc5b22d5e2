use super::world;
use crate::world::*;
use windlass::core::{Delivery, Millis, Outcome, Reason, State};
use windlass::low_level::job::{LeaseId, NewJob};
use windlass::low_level::stores::{Claim, Committed, Leases, Reap, Renewed, Scope, Spared, WorkerId};

#[tokio::test]
async fn a_lease_that_ran_out_is_reaped_and_its_attempt_counted_once() {
    let w = world().await;
    let id = w.put(job()).await;
    w.claim_one().await;
    w.advance(LEASE - Millis::new(1));
    assert!(w.reap().await.is_empty());
    w.advance(Millis::new(1));
    let other = w.reopened().await;
    let reapers = [w.store.clone(), other.clone(), w.store.clone(), other].map(|store| {
        tokio::spawn(async move { store.reap(Reap::Expired { spared: Spared::none() }, 10).await.unwrap().len() })
    });
    let mut reaped = 0;
    for reaper in reapers {
        reaped += reaper.await.unwrap();
    }
    assert_eq!(reaped, 1);
    let lost = w.get(id).await;
    assert_eq!((lost.state, lost.failures, lost.crashes), (State::Retrying, 1, 1));
    let ledger = w.ledger(id).await;
    assert_eq!(ledger.len(), 1);
    assert_eq!((ledger[0].error_class.as_deref(), &*ledger[0].worker), (Some("WorkerLost"), "w1"));
}

#[tokio::test]
async fn a_renewed_lease_is_not_reaped() {
    let w = world().await;
    w.put(job()).await;
    let running = w.claim_one().await;
    let lease = running.lease;
    for _ in 0..5 {
        w.advance(LEASE - SECOND);
        let renewed = w.store.renew(&WorkerId::new("w1"), vec![lease], LEASE).await.unwrap();
        assert_eq!(renewed, Renewed::default());
        assert!(w.reap().await.is_empty());
    }
    assert_applied(&w.succeed(&running).await);
}

#[tokio::test]
async fn renewing_or_ending_a_lease_affects_no_other() {
    let w = world().await;
    w.put_all(vec![job(); 3]).await;
    let (renewed, left, ended) = (w.claim_one().await, w.claim_one().await, w.claim_one().await);
    let success = w.commit_of(&ended, &Outcome::Succeeded);
    assert_applied(&w.store.commit(vec![success], vec![ended.lease]).await.unwrap()[0]);
    w.advance(LEASE - SECOND);
    w.store.renew(&WorkerId::new("w1"), vec![renewed.lease], LEASE).await.unwrap();
    w.advance(SECOND);
    assert_eq!(w.reap().await.iter().map(|moved| moved.job.id).collect::<Vec<_>>(), [left.id]);
    assert_applied(&w.succeed(&renewed).await);
}

#[tokio::test]
async fn a_lease_renewed_for_a_shorter_time_lasts_until_its_end() {
    let w = world().await;
    w.put(job()).await;
    let running = w.claim_one().await;
    assert!(w.reap().await.is_empty());
    let third = Millis::new(LEASE.get() / 3);
    w.advance(third);
    w.store.renew(&WorkerId::new("w1"), vec![running.lease], third + third).await.unwrap();
    w.advance(third);
    assert!(w.reap().await.is_empty(), "it ends when it did before");
    w.advance(third);
    assert_eq!(w.reap().await.len(), 1);
}

#[tokio::test]
async fn a_lease_ends_when_it_is_reaped_not_when_the_clock_says_so() {
    let w = world().await;
    w.put_all(vec![job(), job()]).await;
    let first = w.claim_one().await;
    let second = w.claim_one().await;
    w.advance(LEASE + LEASE);
    let renewed = w.store.renew(&WorkerId::new("w1"), vec![first.lease], LEASE).await.unwrap();
    assert!(renewed.lost.is_empty(), "late, but not too late");
    assert_applied(&w.succeed(&second).await);
    w.advance(LEASE + SECOND);
    w.reap().await;
    let renewed = w.store.renew(&WorkerId::new("w1"), vec![first.lease], LEASE).await.unwrap();
    assert_eq!(renewed.lost, [first.lease]);
    assert_eq!(w.succeed(&first).await, Committed::Stale);
}

#[tokio::test]
async fn a_node_spares_leases_that_ran_out_while_it_was_out_of_touch() {
    let w = world().await;
    w.put(job()).await;
    w.claim_one().await;
    w.advance(LEASE + SECOND);
    let half = Millis::new(LEASE.get() / 2);
    let mut hung = Spared::none();
    hung.after(half + Millis::new(1), LEASE - Millis::new(1), Millis::ZERO);
    let mut others = Spared::none();
    others.after(half - SECOND, LEASE + SECOND, SECOND + SECOND);
    for spared in [Spared::all(), Spared::beyond(LEASE - Millis::new(1)), hung, others] {
        assert!(w.store.reap(Reap::Expired { spared }, 10).await.unwrap().is_empty());
    }
    // Long enough ago, or too short to matter.
    let mut spared = Spared::beyond(LEASE);
    spared.after(half + SECOND, LEASE, Millis::ZERO);
    spared.after(half, Millis::ZERO, Millis::ZERO);
    spared.after(half, LEASE + SECOND, SECOND);
    spared.after(half - SECOND, Millis::ZERO, SECOND);
    assert_eq!(w.store.reap(Reap::Expired { spared }, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn leases_that_are_spared_do_not_keep_others_from_being_reaped() {
    let w = world().await;
    w.put_all(vec![job(), job()]).await;
    for (id, lease_for) in [(1, LEASE), (2, SECOND)] {
        let leases = Leases::Shared(LeaseId(id));
        let request = Claim { leases, lease_for, ..w.request(&["default"], 1).await };
        assert_eq!(w.store.claim(request).await.unwrap().jobs.len(), 1);
    }
    w.advance(LEASE + SECOND);
    let spared = Spared::beyond(LEASE - Millis::new(1));
    let reaped = w.store.reap(Reap::Expired { spared }, 1).await.unwrap();
    assert_eq!(reaped.iter().map(|moved| moved.lease).collect::<Vec<_>>(), [Some(LeaseId(2))]);
}

#[tokio::test]
async fn a_restarted_worker_frees_its_own_leases_at_once_and_no_others() {
    let w = world().await;
    let mine = w.put(job_in("a")).await;
    let theirs = w.put(job_in("b")).await;
    w.claim(&["a"], 1).await;
    let mut request = w.request(&["b"], 1).await;
    request.worker = WorkerId::new("w2");
    w.store.claim(request).await.unwrap();
    let freed = w.store.reap(Reap::Of(WorkerId::new("w1")), 10).await.unwrap();
    assert_eq!(freed.iter().map(|s| s.job.id).collect::<Vec<_>>(), [mine]);
    assert_eq!(w.get(theirs).await.state, State::Running);
}

#[tokio::test]
async fn an_at_most_once_job_whose_worker_is_lost_never_runs_again() {
    let w = world().await;
    let id = w.put(NewJob { delivery: Delivery::AtMostOnce, ..job() }).await;
    w.claim_one().await;
    w.advance(LEASE + SECOND);
    w.reap().await;
    let job = w.get(id).await;
    assert_eq!((job.state, job.reason.map(Reason::as_str)), (State::Failed, Some("at_most_once")));
    w.advance(Millis::from_secs(86_400));
    assert!(w.claim(&["default"], 1).await.jobs.is_empty());
}

#[tokio::test]
async fn three_lost_workers_in_a_row_quarantine_a_job() {
    let w = world().await;
    let id = w.put(NewJob { policy: line("fixed:base=0s,jitter=none,retries=100"), ..job() }).await;
    for round in 1..=3 {
        assert_eq!(w.claim_one().await.attempt, round);
        w.advance(LEASE + SECOND);
        w.reap().await;
    }
    let job = w.get(id).await;
    assert_eq!((job.state, job.reason.map(Reason::as_str)), (State::Failed, Some("crash_loop")));
    assert_eq!(w.ledger(id).await.len(), 3);
}

#[tokio::test]
async fn a_lease_holds_what_is_still_running_under_it() {
    let w = world().await;
    w.put_all(vec![job(), job()]).await;
    let jobs = w.claim(&["default"], 2).await.jobs;
    let lease = jobs[0].lease;
    assert_eq!(w.store.held(vec![lease]).await.unwrap().len(), 2);
    w.succeed(&jobs[0]).await;
    let held = w.store.held(vec![lease]).await.unwrap();
    assert_eq!(held.iter().map(|job| job.id).collect::<Vec<_>>(), [jobs[1].id]);
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 1, "only the one that did not finish is lost");
    assert!(w.store.held(vec![lease]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_worker_id_is_locked_by_one_process_at_a_time() {
    let w = world().await;
    let id = WorkerId::new("w1");
    let lock = w.store.lock_worker(&id).await.unwrap();
    assert!(lock.is_some());
    let other = w.reopened().await;
    assert!(other.lock_worker(&id).await.unwrap().is_none());
    assert!(other.lock_worker(&WorkerId::new("w2")).await.unwrap().is_some());
    drop(lock);
    // A database may need a moment to notice that its client has disconnected.
    let mut again = None;
    for _ in 0..1000 {
        again = other.lock_worker(&id).await.unwrap();
        if again.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(again.is_some());
}

/// A lease lists the jobs that were claimed under it, also those that another lease holds by now.
#[tokio::test]
async fn a_job_counts_and_is_cancelled_under_the_lease_that_holds_it() {
    let w = world().await;
    w.put_all(vec![job(), job(), job()]).await;
    let first = w.claim(&["default"], 2).await.jobs;
    let other = w.claim_one().await;
    assert_applied(&w.fail(&first[0]).await);
    w.advance(Millis::from_secs(10));
    let again = w.claim_one().await;
    assert_eq!(again.id, first[0].id);
    let running = w.store.depths(&Scope::All).await.unwrap()[0].running;
    assert_eq!(running, 3, "each job once");
    w.store.cancel(&Scope::All, vec![again.id, first[1].id]).await.unwrap();
    let asked = async |lease| {
        w.store.renew(&WorkerId::new("w1"), vec![lease], LEASE).await.unwrap().cancel_requested
    };
    assert_eq!(asked(first[0].lease).await, [first[1].id], "the first lease no longer holds the other");
    assert_eq!(asked(other.lease).await, []);
    assert_eq!(asked(again.lease).await, [again.id]);
}
