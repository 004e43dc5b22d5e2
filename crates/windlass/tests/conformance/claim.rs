use super::world;
use crate::world::*;
use std::collections::HashSet;
use windlass::core::job::QueueName;
use windlass::core::{Delivery, Executor, Millis, Outcome, Priority, Reason, State};
use windlass::low_level::job::{LeaseId, NewJob, RunAt};
use windlass::low_level::stores::{Claim, Leases, Scope, Share};

#[tokio::test]
async fn a_claim_makes_a_job_running_and_numbers_its_attempt() {
    let w = world().await;
    let id = w.put(job()).await;
    let claimed = w.claim_one().await;
    assert_eq!((claimed.id, claimed.state, claimed.attempt), (id, State::Running, 1));
    let stored = w.get(id).await;
    assert_eq!((stored.state, stored.attempt), (State::Running, 1));
    assert_eq!(w.store.held(vec![claimed.lease]).await.unwrap()[0].id, id);
    assert_eq!(stored.first_attempt_at, Some(START));
    assert!(w.claim(&["default"], 1).await.jobs.is_empty(), "a running job cannot be claimed");
}

#[tokio::test]
async fn higher_priority_comes_first_then_due_time_then_insertion() {
    let w = world().await;
    let at = |priority, delay| NewJob { priority, run_at: RunAt::After(Millis::new(delay)), ..job() };
    let low = w.put(at(Priority::Low, 0)).await;
    let late = w.put(at(Priority::Normal, 5)).await;
    let first = w.put(at(Priority::Normal, 1)).await;
    let second = w.put(at(Priority::Normal, 1)).await;
    let highest = w.put(at(Priority::Highest, 9)).await;
    w.advance(Millis::new(10));
    assert_eq!(ids(&w.claim(&["default"], 10).await), [highest, first, second, late, low]);
}

#[tokio::test]
async fn a_retried_job_keeps_its_priority() {
    let w = world().await;
    let high = w.put(NewJob { priority: Priority::High, ..job() }).await;
    w.fail(&w.claim_one().await).await;
    w.advance(Millis::from_secs(5));
    let normal = w.put(job()).await;
    w.advance(Millis::from_secs(5));
    assert_eq!(ids(&w.claim(&["default"], 10).await), [high, normal]);
}

#[tokio::test]
async fn nothing_is_claimed_before_its_time_to_the_millisecond() {
    let w = world().await;
    let id = w.put(NewJob { run_at: RunAt::After(Millis::new(1000)), ..job() }).await;
    w.advance(Millis::new(999));
    let claimed = w.claim(&["default"], 1).await;
    assert!(claimed.jobs.is_empty());
    assert_eq!(claimed.next_due, Some(START + SECOND));
    w.advance(Millis::new(1));
    assert_eq!(w.claim_one().await.id, id);
}

#[tokio::test]
async fn a_due_job_brings_no_other_one_that_is_due_a_millisecond_later() {
    let w = world().await;
    let at = |delay| NewJob { run_at: RunAt::After(Millis::new(delay)), ..job() };
    let (first, second) = (w.put(at(1000)).await, w.put(at(1001)).await);
    w.advance(Millis::new(1000));
    let claimed = w.claim(&["default"], 10).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![first], Some(START + Millis::new(1001))));
    w.advance(Millis::new(1));
    assert_eq!(ids(&w.claim(&["default"], 10).await), [second]);
}

#[tokio::test]
async fn the_next_due_time_is_the_earliest_over_queues_and_priorities() {
    let w = world().await;
    let later = |queue, priority, s| NewJob { priority, run_at: RunAt::After(Millis::from_secs(s)), ..job_in(queue) };
    w.put(later("a", Priority::High, 30)).await;
    w.put(later("a", Priority::Low, 20)).await;
    w.put(later("b", Priority::Normal, 10)).await;
    assert_eq!(w.claim(&["a"], 5).await.next_due, Some(START + Millis::from_secs(20)));
    assert_eq!(w.claim(&["a", "b"], 5).await.next_due, Some(START + Millis::from_secs(10)));
    assert_eq!(w.claim(&["c"], 5).await.next_due, None);
}

#[tokio::test]
async fn each_queue_gives_its_share_in_the_requested_order() {
    let w = world().await;
    let a = w.put_all((0..5).map(|_| job_in("a")).collect()).await;
    let b = w.put_all((0..2).map(|_| job_in("b")).collect()).await;
    let claimed = w.claim(&["b", "a"], 3).await;
    assert_eq!(ids(&claimed), [b[0], b[1], a[0], a[1], a[2]]);
}

#[tokio::test]
async fn a_claim_keeps_its_limit_and_serves_queues_in_order() {
    let w = world().await;
    let a = w.put_all((0..3).map(|_| job_in("a")).collect()).await;
    w.put_all((0..3).map(|_| job_in("b")).collect()).await;
    let request = Claim { limit: 2, ..w.request(&["a", "b"], 3).await };
    let claimed = w.store.claim(request).await.unwrap();
    assert_eq!(ids(&claimed), [a[0], a[1]]);
}

#[tokio::test]
async fn tenants_have_queues_of_their_own_under_one_name() {
    let w = world().await;
    let mine = w.put(job_in("mail")).await;
    let theirs = w.put(NewJob { tenant: tenant("acme"), ..job_in("mail") }).await;
    let queues = w.store.queues().await.unwrap();
    let shares: Vec<Share> = queues.iter().rev().map(|q| Share { queue: q.id, slots: 1, ahead: 0 }).collect();
    assert_eq!(shares.len(), 2);
    let claimed = w.store.claim(w.request_shares(shares)).await.unwrap();
    assert_eq!(ids(&claimed), [theirs, mine]);
    assert_eq!(claimed.jobs[0].tenant, tenant("acme"));
}

#[tokio::test]
async fn http_and_worker_jobs_of_one_queue_name_do_not_mix() {
    let w = world().await;
    let called = w.put(NewJob { executor: Executor::Http, ..job() }).await;
    let worked = w.put(job()).await;
    assert_eq!(ids(&w.claim(&["default"], 5).await), [worked]);
    let name = QueueName::default();
    let queue = w.store.register_queue(&Default::default(), &name, Executor::Http).await.unwrap();
    let share = Share { queue: queue.id, slots: 5, ahead: 0 };
    assert_eq!(ids(&w.store.claim(w.request_shares(vec![share])).await.unwrap()), [called]);
}

#[tokio::test]
async fn many_concurrent_claimers_never_share_a_job() {
    let w = world().await;
    let stored = w.put_all((0..400).map(|_| job()).collect()).await;
    let other = w.reopened().await;
    let queue = w.queue_id("default").await;
    let claimers: Vec<_> = (0..8)
        .map(|i| {
            let store = if i % 2 == 0 { w.store.clone() } else { other.clone() };
            let random = w.random.clone();
            let request = w.request_shares(vec![Share { queue, slots: 7, ahead: 0 }]);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                let mut empty = 0;
                // A claimer may find only rows that another one is taking: it tries again before it stops.
                while empty < 3 {
                    let leases = Leases::Shared(LeaseId::draw(&random));
                    let claimed = store.claim(Claim { leases, ..request.clone() }).await.unwrap();
                    empty = if claimed.jobs.is_empty() { empty + 1 } else { 0 };
                    mine.extend(claimed.jobs.into_iter().map(|job| job.id));
                }
                mine
            })
        })
        .collect();
    let mut taken = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.unwrap());
    }
    let distinct: HashSet<_> = taken.iter().copied().collect();
    assert_eq!(taken.len(), distinct.len(), "no job twice");
    assert_eq!(distinct.len(), stored.len(), "every job once");
}

#[tokio::test]
async fn remote_workers_get_a_lease_for_each_job() {
    let w = world().await;
    w.put_all(vec![job(), job()]).await;
    let leases = vec![LeaseId(1), LeaseId(2), LeaseId(3)];
    let request = Claim { leases: Leases::Each(leases), limit: 3, ..w.request(&["default"], 3).await };
    let claimed = w.store.claim(request).await.unwrap();
    let given: Vec<_> = claimed.jobs.iter().map(|job| job.lease).collect();
    assert_eq!(given, [LeaseId(1), LeaseId(2)]);
    assert_eq!(w.store.held(vec![LeaseId(2)]).await.unwrap()[0].id, claimed.jobs[1].id);
    let all: Vec<_> = (1..=3).rev().map(LeaseId).collect();
    let ids: Vec<_> = w.store.held(all).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(ids, [claimed.jobs[1].id, claimed.jobs[0].id], "lease by lease");
    assert!(w.store.held(vec![LeaseId(3)]).await.unwrap().is_empty());
}

#[tokio::test]
async fn at_most_once_jobs_are_taken_into_free_slots_only() {
    let w = world().await;
    let once = || NewJob { delivery: Delivery::AtMostOnce, ..job() };
    let stored = w.put_all(vec![job(), once(), once(), job()]).await;
    let queue = w.queue_id("default").await;
    let share = Share { queue, slots: 2, ahead: 2 };
    let claimed = w.store.claim(w.request_shares(vec![share])).await.unwrap();
    assert_eq!(&ids(&claimed)[..2], [stored[0], stored[1]]);
    assert!(!ids(&claimed).contains(&stored[2]), "no slot is free for the second at-most-once job");
    assert_eq!(w.get(stored[2]).await.attempt, 0);
    let share = Share { queue, slots: 0, ahead: 5 };
    let claimed = w.store.claim(w.request_shares(vec![share])).await.unwrap();
    assert!(!ids(&claimed).contains(&stored[2]));
    let share = Share { queue, slots: 1, ahead: 0 };
    assert_eq!(ids(&w.store.claim(w.request_shares(vec![share])).await.unwrap()), [stored[2]]);
}

#[tokio::test]
async fn suspects_are_bounded_and_other_jobs_are_still_claimed() {
    let w = world().await;
    let suspects = w.put_all(vec![job(), job()]).await;
    w.claim(&["default"], 2).await;
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 2);
    w.advance(Millis::from_secs(10));
    let innocent = w.put_all(vec![job(), job()]).await;
    let request = Claim { suspects: 1, ..w.request(&["default"], 10).await };
    let claimed = ids(&w.store.claim(request).await.unwrap());
    assert_eq!(claimed.iter().filter(|id| suspects.contains(id)).count(), 1);
    assert!(innocent.iter().all(|id| claimed.contains(id)));
    let request = Claim { suspects: 0, ..w.request(&["default"], 10).await };
    assert!(w.store.claim(request).await.unwrap().jobs.is_empty());
}

/// Stores look closer at the order of due jobs when one of them has lost a worker.
#[tokio::test]
async fn a_claim_that_takes_a_suspect_takes_no_job_that_is_paused_early_or_late() {
    let w = world().await;
    let slower = NewJob { policy: line("fixed:base=10001ms,jitter=none,cap=none,retries=3"), ..job() };
    let suspects = w.put_all(vec![job(), slower]).await;
    assert_eq!(w.claim(&["default"], 2).await.jobs.len(), 2);
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 2);
    let due = w.get(suspects[0]).await.due_at;
    let next = due + Millis::new(1);
    let later = w.put(NewJob { run_at: RunAt::At(next), ..job() }).await;
    w.put(NewJob { start_by: Some(due), ..job() }).await;
    w.put(job_in("paused")).await;
    let paused = QueueName::new("paused").unwrap();
    w.store.pause_queue(&Default::default(), &paused, true).await.unwrap();
    w.advance(due.since(w.now()));
    let claimed = w.claim(&["paused", "default"], 10).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![suspects[0]], Some(next)));
    w.advance(Millis::new(1));
    assert_eq!(ids(&w.claim(&["paused", "default"], 10).await), [suspects[1], later]);
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_until_resumed() {
    let w = world().await;
    let id = w.put(job()).await;
    let name = QueueName::default();
    assert_eq!(w.store.pause_queue(&Default::default(), &name, true).await.unwrap(), 1);
    w.put(NewJob { run_at: RunAt::After(SECOND), ..job() }).await;
    let claimed = w.claim(&["default"], 1).await;
    assert!(claimed.jobs.is_empty());
    assert_eq!(claimed.next_due, None, "nothing to come back for");
    assert_eq!(w.store.pause_queue(&Default::default(), &name, false).await.unwrap(), 1);
    assert_eq!(w.claim_one().await.id, id);
    assert_eq!(w.store.pause_queue(&tenant("acme"), &name, true).await.unwrap(), 0);
}

#[tokio::test]
async fn jobs_that_started_or_may_still_start_do_not_keep_late_ones_from_expiring() {
    let w = world().await;
    let by = |start_by| NewJob { start_by: Some(start_by), ..job() };
    w.put_all(vec![by(START + SECOND), by(START + SECOND)]).await;
    let started = w.claim(&["default"], 2).await.jobs;
    assert_applied(&w.commit(&started[1], Outcome::Snoozed(SECOND)).await);
    w.put(by(START + Millis::from_secs(60))).await;
    let late = w.put(by(START + SECOND)).await;
    w.advance(SECOND);
    let expired: Vec<_> = w.store.expire(1).await.unwrap().iter().map(|moved| moved.job.id).collect();
    assert_eq!(expired, [late]);
}

#[tokio::test]
async fn a_late_job_among_others_is_skipped_until_it_expires() {
    let w = world().await;
    let by = || NewJob { start_by: Some(START + SECOND), ..job() };
    let started = w.put(by()).await;
    w.commit(&w.claim_one().await, Outcome::Snoozed(SECOND)).await;
    let first = w.put(job()).await;
    let late = w.put(by()).await;
    let last = w.put(job()).await;
    w.advance(SECOND);
    let claimed = w.claim(&["default"], 5).await;
    assert_eq!(ids(&claimed), [first, last, started], "one that started in time may continue");
    assert_eq!(claimed.next_due, None, "it becomes due no more");
    let depths = w.store.depths(&Scope::All).await.unwrap();
    assert_eq!((depths[0].due, depths[0].running), (1, 3));
    let expired = w.store.expire(10).await.unwrap();
    assert_eq!(expired.iter().map(|transitioned| transitioned.job.id).collect::<Vec<_>>(), [late]);
}

#[tokio::test]
async fn a_job_not_started_in_time_expires_and_is_never_claimed() {
    let w = world().await;
    let id = w.put(NewJob { start_by: Some(START + SECOND), ..job() }).await;
    let in_time = w.put(NewJob { start_by: Some(START + SECOND), priority: Priority::High, ..job() }).await;
    let started = w.claim_one().await;
    assert_eq!(started.id, in_time);
    assert!(w.store.expire(10).await.unwrap().is_empty());
    w.advance(SECOND);
    assert!(w.claim(&["default"], 5).await.jobs.is_empty());
    let expired = w.store.expire(10).await.unwrap();
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].job.id, id);
    let job = w.get(id).await;
    assert_eq!((job.state, job.reason.map(Reason::as_str), job.attempt), (State::Failed, Some("expired"), 0));
    assert_applied(&w.commit(&started, Outcome::Snoozed(SECOND)).await);
    w.advance(SECOND);
    assert_eq!(w.claim_one().await.id, in_time, "a job that started in time may continue");
    assert!(w.store.job(&Scope::All, id).await.unwrap().is_some());
}
