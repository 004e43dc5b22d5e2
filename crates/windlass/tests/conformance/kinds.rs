//! Claims of some kinds: a worker takes only jobs that it knows how to run.

use super::world;
use crate::world::*;
use windlass::core::job::{Kind, QueueName};
use windlass::core::{Delivery, JobId, Millis, Outcome, Priority, State};
use windlass::low_level::job::{NewJob, RunAt};
use windlass::low_level::stores::{Amend, Claim, Claimed, Kinds, Scope};

/// More due jobs than one claim looks at.
const CROWD: usize = 2_500;
/// More claims than it takes to look past them.
const ENOUGH: usize = 10;

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

fn kinds(names: &[&str]) -> Option<Kinds> {
    Some(names.iter().map(|name| kind(name)).collect())
}

fn of_kind(name: &str) -> NewJob {
    NewJob { kind: kind(name), ..job() }
}

async fn claim_kinds(w: &World, names: &[&str], slots: u32) -> Claimed {
    let request = Claim { kinds: kinds(names), ..w.request(&["default"], slots).await };
    w.store.claim(request).await.unwrap()
}

/// Claims until a job is found, as a worker does that learns to look again at once.
async fn claim_until_found(w: &World, name: &str) -> Vec<JobId> {
    for _ in 0..ENOUGH {
        let claimed = claim_kinds(w, &[name], 1).await;
        if !claimed.jobs.is_empty() {
            return ids(&claimed);
        }
        assert_eq!(claimed.next_due, Some(w.now()), "it says that there is more to look at");
    }
    Vec::new()
}

#[tokio::test]
async fn a_claim_of_some_kinds_takes_those_in_order_and_leaves_the_others_alone() {
    let w = world().await;
    let [a, other, b, high] = [
        w.put(of_kind("a")).await,
        w.put(of_kind("other")).await,
        w.put(of_kind("b")).await,
        w.put(NewJob { priority: Priority::High, ..of_kind("a") }).await,
    ];
    assert_eq!(ids(&claim_kinds(&w, &["a", "b"], 10).await), [high, a, b]);
    let left = w.get(other).await;
    assert_eq!((left.state, left.attempt), (State::Queued, 0));
    assert!(claim_kinds(&w, &["a", "b"], 10).await.jobs.is_empty());
    assert_eq!(ids(&w.claim(&["default"], 10).await), [other]);
}

#[tokio::test]
async fn kinds_are_compared_to_the_letter() {
    let w = world().await;
    w.put_all(vec![of_kind("Email"), of_kind("email2"), of_kind("e")]).await;
    assert!(claim_kinds(&w, &["email"], 10).await.jobs.is_empty());
}

#[tokio::test]
async fn a_crowd_of_other_kinds_is_not_in_the_way() {
    let w = world().await;
    w.put_all((0..CROWD).map(|_| of_kind("new")).collect()).await;
    let known = w.put_all((0..2).map(|_| of_kind("old")).collect()).await;
    assert_eq!(claim_until_found(&w, "old").await, known[..1]);
    assert_eq!(ids(&claim_kinds(&w, &["old"], 10).await), known[1..], "it continues where it was");
    let last = claim_kinds(&w, &["old"], 1).await;
    assert!(last.jobs.is_empty());
    assert_eq!(last.next_due, None, "everything was looked at");
    let later = w.put(of_kind("old")).await;
    assert_eq!(ids(&claim_kinds(&w, &["old"], 1).await), [later], "new jobs come after what was passed over");
}

#[tokio::test]
async fn a_few_jobs_among_a_crowd_are_all_found_in_order() {
    let w = world().await;
    let mut jobs: Vec<NewJob> = (0..CROWD).map(|_| of_kind("new")).collect();
    for place in [5, 900, 1_100, 2_400] {
        jobs[place].kind = kind("old");
    }
    let all = w.put_all(jobs).await;
    let mut found = Vec::new();
    for _ in 0..ENOUGH {
        found.extend(ids(&claim_kinds(&w, &["old"], 3).await));
    }
    assert_eq!(found, [all[5], all[900], all[1_100], all[2_400]]);
}

#[tokio::test]
async fn a_job_that_becomes_due_among_those_passed_over_is_found() {
    let w = world().await;
    let waiting = w.put(NewJob { run_at: RunAt::After(Millis::from_secs(3600)), ..of_kind("old") }).await;
    w.put_all((0..CROWD).map(|_| of_kind("new")).collect()).await;
    for _ in 0..ENOUGH {
        assert!(claim_kinds(&w, &["old"], 1).await.jobs.is_empty());
    }
    let amend = Amend { run_at: Some(START), ..Amend::default() };
    w.store.amend(&Scope::All, waiting, amend).await.unwrap();
    assert_eq!(claim_until_found(&w, "old").await, [waiting]);
}

#[tokio::test]
async fn everything_is_looked_at_again_after_a_while() {
    let w = world().await;
    w.put_all((0..CROWD).map(|_| of_kind("new")).collect()).await;
    for _ in 0..ENOUGH {
        assert!(claim_kinds(&w, &["old"], 1).await.jobs.is_empty());
    }
    // Stored by another node, so that this one does not know.
    let other = w.reopened().await;
    let early = NewJob { run_at: RunAt::At(START - Millis::from_secs(1)), ..of_kind("old") };
    let stored = other.enqueue(vec![early], windlass::low_level::stores::Atomicity::Each).await.unwrap();
    w.advance(Millis::from_secs(61));
    assert_eq!(claim_until_found(&w, "old").await, [stored[0].id().unwrap()]);
}

#[tokio::test]
async fn what_a_claim_must_skip_does_not_hide_other_jobs_of_its_kinds() {
    let w = world().await;
    let once = || NewJob { delivery: Delivery::AtMostOnce, ..of_kind("a") };
    let first = w.put_all(vec![once(), once(), once()]).await;
    let rest = w.put_all(vec![of_kind("other"), of_kind("a"), of_kind("a")]).await;
    let mut request = Claim { kinds: kinds(&["a"]), ..w.request(&["default"], 1).await };
    request.shares[0].ahead = 2;
    let claimed = w.store.claim(request).await.unwrap();
    assert_eq!(ids(&claimed), [first[0], rest[1], rest[2]], "one slot, so one at-most-once job");
}

#[tokio::test]
async fn suspects_of_a_kind_are_taken_one_at_a_time() {
    let w = world().await;
    let lost = w.put_all((0..3).map(|_| of_kind("a")).collect()).await;
    assert_eq!(claim_kinds(&w, &["a"], 3).await.jobs.len(), 3);
    w.advance(LEASE + SECOND);
    w.reap().await;
    w.advance(Millis::from_secs(60));
    let plain = w.put(of_kind("a")).await;
    let one = Claim { kinds: kinds(&["a"]), suspects: 1, ..w.request(&["default"], 2).await };
    assert_eq!(ids(&w.store.claim(one).await.unwrap()), [lost[0], plain]);
    let none = Claim { kinds: kinds(&["a"]), suspects: 0, ..w.request(&["default"], 2).await };
    assert!(w.store.claim(none).await.unwrap().jobs.is_empty());
}

#[tokio::test]
async fn a_job_past_its_latest_start_is_not_claimed() {
    let w = world().await;
    w.put(NewJob { start_by: Some(START + SECOND), ..of_kind("a") }).await;
    let fine = w.put(of_kind("a")).await;
    w.advance(SECOND);
    assert_eq!(ids(&claim_kinds(&w, &["a"], 5).await), [fine]);
}

#[tokio::test]
async fn a_paused_queue_gives_no_kind_and_nothing_to_come_back_for() {
    let w = world().await;
    w.put_all((0..CROWD).map(|_| of_kind("new")).collect()).await;
    let known = w.put(NewJob { priority: Priority::High, ..of_kind("old") }).await;
    w.put(NewJob { run_at: RunAt::After(SECOND), ..of_kind("old") }).await;
    let name = QueueName::default();
    w.store.pause_queue(&Default::default(), &name, true).await.unwrap();
    let claimed = claim_kinds(&w, &["old"], 5).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![], None));
    w.store.pause_queue(&Default::default(), &name, false).await.unwrap();
    assert_eq!(ids(&claim_kinds(&w, &["old"], 5).await), [known]);
}

#[tokio::test]
async fn nothing_of_a_kind_is_claimed_before_its_time_and_a_crowd_of_later_jobs_is_not_looked_at() {
    let w = world().await;
    let after = |millis| NewJob { run_at: RunAt::After(Millis::new(millis)), ..of_kind("a") };
    let [now, soon] = [w.put(of_kind("a")).await, w.put(after(1)).await];
    w.put_all((0..CROWD).map(|_| after(2)).collect()).await;
    let claimed = claim_kinds(&w, &["a"], 5).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![now], Some(START + Millis::new(1))));
    w.advance(Millis::new(1));
    let claimed = claim_kinds(&w, &["a"], 5).await;
    assert_eq!((ids(&claimed), claimed.next_due), (vec![soon], Some(START + Millis::new(2))));
}

#[tokio::test]
async fn suspects_that_may_not_be_taken_do_not_hide_other_jobs_of_their_kind() {
    let w = world().await;
    w.put_all((0..3).map(|_| of_kind("a")).collect()).await;
    assert_eq!(claim_kinds(&w, &["a"], 3).await.jobs.len(), 3);
    w.advance(LEASE + SECOND);
    w.reap().await;
    w.advance(Millis::from_secs(60));
    let plain = w.put(of_kind("a")).await;
    let none = Claim { kinds: kinds(&["a"]), suspects: 0, ..w.request(&["default"], 1).await };
    assert_eq!(ids(&w.store.claim(none).await.unwrap()), [plain]);
}

#[tokio::test]
async fn a_job_that_started_in_time_is_claimed_again_by_its_kind() {
    let w = world().await;
    let id = w.put(NewJob { start_by: Some(START + SECOND), ..of_kind("a") }).await;
    let started = claim_kinds(&w, &["a"], 1).await.jobs.remove(0);
    assert_applied(&w.commit(&started, Outcome::Snoozed(SECOND)).await);
    w.advance(SECOND);
    assert_eq!(ids(&claim_kinds(&w, &["a"], 1).await), [id]);
}
