//! Slots behind limits: each comes back exactly once, however its attempt ends, and nothing stays parked for good.

use super::world;
use crate::world::*;
use windlass::core::gate::{Hold, HoldOrigin};
use windlass::core::job::QueueName;
use windlass::core::{Failure, JobId, Millis, Outcome, Progress};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob};
use windlass::low_level::stores::{Claim, Commit, Committed, GateName, Leases, Reap, Scope, SettingKey, Spared};

const TWO_OF_EACH: &str = r#"{"limits":{"perKey":{"concurrency":2}}}"#;

fn keyed(key: &str) -> NewJob {
    NewJob { limit_key: Some(key.into()), ..job() }
}

async fn flow(w: &World, settings: &str) {
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(settings)).await.unwrap();
}

fn gate(key: &str) -> GateName {
    let queue = QueueName::new("default").unwrap();
    GateName { tenant: Some(tenant("default")), queue, key: Some(key.into()) }
}

async fn claim(w: &World) -> Vec<ClaimedJob> {
    w.claim(&["default"], 10).await.jobs
}

/// How many attempts the gate of a key counts as running.
async fn in_use(w: &World, key: &str) -> u32 {
    let queue = QueueName::new("default").unwrap();
    let gates = w.store.gates(&Scope::All, Some(&queue), 1000).await.unwrap();
    gates.iter().find(|status| status.name == gate(key)).map_or(0, |status| status.gate.in_use())
}

fn succeeded(w: &World, jobs: &[ClaimedJob]) -> Vec<Commit> {
    jobs.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect()
}

fn applied(results: &[Committed]) -> usize {
    results.iter().filter(|result| matches!(result, Committed::Applied(_))).count()
}

#[tokio::test]
async fn a_reap_and_a_late_commit_give_each_slot_back_once() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    let other = w.reopened().await;
    for round in 0..4 {
        w.put_all((0..8).map(|_| keyed("k")).collect()).await;
        let running = claim(&w).await;
        assert_eq!((running.len(), in_use(&w, "k").await), (2, 2), "round {round}");
        let leases = running.iter().map(|job| job.lease).collect();
        w.advance(LEASE + SECOND);
        let late = other.commit(succeeded(&w, &running), leases);
        let (reaped, late) = tokio::join!(w.reap(), late);
        assert_eq!(reaped.len() + applied(&late.unwrap()), 2, "each attempt ends once");
        assert_eq!(in_use(&w, "k").await, 0);
        assert_eq!(applied(&other.commit(succeeded(&w, &running), vec![]).await.unwrap()), 0);
        assert_eq!(in_use(&w, "k").await, 0, "what comes later frees nothing");
        let next = claim(&w).await;
        assert_eq!((next.len(), claim(&w).await.len()), (2, 0));
        w.store.commit(succeeded(&w, &next), vec![]).await.unwrap();
    }
}

#[tokio::test]
async fn starts_are_counted_also_where_nothing_is_parked() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put(keyed("k")).await;
    let first = claim(&w).await;
    w.store.commit(succeeded(&w, &first), vec![]).await.unwrap();
    assert_eq!(in_use(&w, "k").await, 0);
    w.put_all((0..2).map(|_| keyed("k")).collect()).await;
    assert_eq!((claim(&w).await.len(), in_use(&w, "k").await), (2, 2));
    w.put(keyed("k")).await;
    assert_eq!(claim(&w).await.len(), 0);
}

/// More than a store looks at before it asks the gates.
#[tokio::test]
async fn every_start_of_a_large_claim_is_counted_once() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1500}}}"#).await;
    // The first round finds no gate, the second one an idle gate.
    for round in 0..2 {
        w.put_all((0..1400).map(|_| keyed("k")).collect()).await;
        let mut running = w.claim(&["default"], 2000).await.jobs;
        assert_eq!((running.len(), in_use(&w, "k").await), (1400, 1400), "round {round}");
        w.put_all((0..1200).map(|_| keyed("k")).collect()).await;
        running.extend(w.claim(&["default"], 2000).await.jobs);
        assert_eq!((running.len(), in_use(&w, "k").await), (1500, 1500), "round {round}");
        assert_eq!(applied(&w.store.commit(succeeded(&w, &running), vec![]).await.unwrap()), 1500);
        let rest = w.claim(&["default"], 2000).await.jobs;
        assert_eq!((rest.len(), in_use(&w, "k").await), (1100, 1100), "round {round}");
        w.store.commit(succeeded(&w, &rest), vec![]).await.unwrap();
        assert_eq!(in_use(&w, "k").await, 0, "round {round}");
    }
}

#[tokio::test]
async fn a_commit_that_is_repeated_frees_no_second_slot() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put_all((0..6).map(|_| keyed("k")).collect()).await;
    let running = claim(&w).await;
    let twice = [succeeded(&w, &running[..1]), succeeded(&w, &running[..1])].concat();
    assert_eq!(applied(&w.store.commit(twice, vec![]).await.unwrap()), 1);
    assert_eq!(in_use(&w, "k").await, 1);
    assert_eq!(w.succeed(&running[0]).await, Committed::Repeated);
    assert_eq!(in_use(&w, "k").await, 1);
    assert_eq!(claim(&w).await.len(), 1);
}

#[tokio::test]
async fn the_jobs_of_one_lease_give_their_slots_back_one_by_one() {
    for leases in [false, true] {
        let w = world().await;
        flow(&w, r#"{"limits":{"concurrency":5,"perKey":{"concurrency":2}}}"#).await;
        w.put_all((0..12).map(|nth| keyed(["a", "b", "c"][nth % 3])).collect()).await;
        let mut request = w.request(&["default"], 10).await;
        if leases {
            request.leases = Leases::Each((0..10).map(|_| LeaseId::draw(&w.random)).collect());
            request = Claim { limit: 10, ..request };
        }
        let running = w.store.claim(request).await.unwrap().jobs;
        assert_eq!(running.len(), 5);
        assert_applied(&w.succeed(&running[0]).await);
        assert_applied(&w.commit(&running[1], Outcome::Released(Progress::NotStarted)).await);
        assert_applied(&w.fail(&running[2]).await);
        assert_eq!([in_use(&w, "a").await, in_use(&w, "b").await, in_use(&w, "c").await], [1, 1, 0]);
        w.advance(LEASE + SECOND);
        assert_eq!(w.reap().await.len(), 2, "those that had not ended");
        assert_eq!([in_use(&w, "a").await, in_use(&w, "b").await, in_use(&w, "c").await], [0, 0, 0]);
    }
}

#[tokio::test]
async fn a_lease_reaped_after_settings_changed_frees_its_slots() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put_all((0..8).map(|_| keyed("k")).collect()).await;
    assert_eq!(claim(&w).await.len(), 2);
    flow(&w, r#"{"limits":{"perKey":{"concurrency":3,"rate":"1000/1s","burst":1000}}}"#).await;
    assert_eq!(claim(&w).await.len(), 1, "what ran before counts");
    flow(&w, "{}").await;
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 3);
    assert_eq!(in_use(&w, "k").await, 0);
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    w.advance(Millis::from_secs(3600));
    assert_eq!((claim(&w).await.len(), claim(&w).await.len()), (1, 0));
}

#[tokio::test]
async fn what_runs_while_its_key_is_held_gives_its_slot_back() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put_all((0..6).map(|_| keyed("k")).collect()).await;
    let running = claim(&w).await;
    let until = w.now() + Millis::from_secs(60);
    let hold = Hold { since: w.now(), until, origin: HoldOrigin::Operator("ann".into()), reason: String::new() };
    w.store.put_hold(&gate("k"), Some(&hold)).await.unwrap();
    assert_applied(&w.succeed(&running[0]).await);
    assert_applied(&w.commit(&running[1], Outcome::Released(Progress::NotStarted)).await);
    assert_eq!(in_use(&w, "k").await, 0);
    assert_eq!(claim(&w).await.len(), 0, "the hold is still in force");
    w.advance(Millis::from_secs(180));
    assert_eq!((claim(&w).await.len(), claim(&w).await.len()), (2, 0));
}

#[tokio::test]
async fn a_paused_queue_starts_nothing_that_was_parked() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put_all((0..6).map(|_| keyed("k")).collect()).await;
    let running = claim(&w).await;
    let (owner, queue) = (tenant("default"), QueueName::new("default").unwrap());
    w.store.pause_queue(&owner, &queue, true).await.unwrap();
    w.store.commit(succeeded(&w, &running), vec![]).await.unwrap();
    assert_eq!(claim(&w).await.len(), 0);
    w.store.pause_queue(&owner, &queue, false).await.unwrap();
    assert_eq!(claim(&w).await.len(), 2);
}

#[tokio::test]
async fn a_claim_does_not_come_back_for_a_gate_of_a_paused_queue() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"rate":"1/1h","burst":1}}}"#).await;
    w.put_all(vec![keyed("k"); 2]).await;
    let until = Some(w.now() + Millis::from_secs(3600));
    assert_eq!(w.claim(&["default"], 10).await.next_due, until);
    let (owner, queue) = (tenant("default"), QueueName::new("default").unwrap());
    w.store.pause_queue(&owner, &queue, true).await.unwrap();
    assert_eq!(w.claim(&["default"], 10).await.next_due, None);
    w.store.pause_queue(&owner, &queue, false).await.unwrap();
    assert_eq!(w.claim(&["default"], 10).await.next_due, until);
}

#[tokio::test]
async fn commits_beside_claims_never_pass_the_limit_and_leave_nothing_parked() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    let other = w.reopened().await;
    let jobs: Vec<JobId> = w.put_all((0..60).map(|nth| keyed(["a", "b", "c"][nth % 3])).collect()).await;
    let (mut running, mut ended) = (Vec::<ClaimedJob>::new(), 0);
    // Every round ends one half of what runs while a claim looks for more.
    for round in 0..200 {
        if ended == jobs.len() {
            break;
        }
        let ending: Vec<ClaimedJob> = running.drain(..running.len().div_ceil(2)).collect();
        let commit = other.commit(succeeded(&w, &ending), vec![]);
        let (started, committed) = tokio::join!(claim(&w), commit);
        ended += applied(&committed.unwrap());
        running.extend(started);
        for key in ["a", "b", "c"] {
            let of_key = running.iter().filter(|job| job.limit_key.as_deref() == Some(key)).count();
            assert!(of_key <= 2, "round {round}: {of_key} of {key} run");
            assert_eq!(in_use(&w, key).await as usize, of_key, "round {round}");
        }
        w.advance(Millis::new(5));
    }
    assert_eq!(ended, jobs.len(), "nothing waits for good");
    assert_eq!(w.store.reap(Reap::Expired { spared: Spared::none() }, 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn what_a_gate_no_longer_enforces_is_forgotten_when_the_next_job_starts() {
    let w = world().await;
    let limits = r#""limits":{"perKey":{"concurrency":3}}"#;
    let with_breaker = format!(r#"{{{limits},"breaker":{{"minimum":3,"window":"1m","openFor":"30s"}}}}"#);
    let without = format!("{{{limits}}}");
    flow(&w, &with_breaker).await;
    w.put_all((0..12).map(|_| keyed("k")).collect()).await;
    for job in claim(&w).await {
        let down = Failure::new("it is down").class("Unavailable");
        assert_applied(&w.commit(&job, Outcome::Failed(down)).await);
    }
    assert_eq!(claim(&w).await.len(), 0, "the breaker is open");
    w.advance(Millis::from_secs(31));
    assert_eq!(claim(&w).await.len(), 1, "a probe");
    flow(&w, &without).await;
    let others = claim(&w).await;
    assert_eq!(others.len(), 2, "without a breaker only the limit counts");
    flow(&w, &with_breaker).await;
    assert_applied(&w.succeed(&others[0]).await);
    assert_eq!(claim(&w).await.len(), 1, "the breaker is closed");
}

#[tokio::test]
async fn a_lease_that_ends_keeps_no_slot_of_another() {
    let w = world().await;
    flow(&w, TWO_OF_EACH).await;
    w.put_all(vec![keyed("k"); 2]).await;
    let (first, second) = (w.claim_one().await, w.claim_one().await);
    for (job, left) in [(first, 1), (second, 0)] {
        w.store.commit(succeeded(&w, std::slice::from_ref(&job)), vec![job.lease]).await.unwrap();
        assert_eq!(in_use(&w, "k").await, left);
    }
}

#[tokio::test]
async fn attempts_that_end_one_after_the_other_let_parked_jobs_start_once_there_is_room() {
    let w = world().await;
    let at_most = |count: u32| format!(r#"{{"limits":{{"perKey":{{"concurrency":{count},"rate":"900/1s","burst":900}}}}}}"#);
    flow(&w, &at_most(3)).await;
    w.put_all(vec![keyed("k"); 5]).await;
    let running = claim(&w).await;
    assert_eq!(running.len(), 3);
    flow(&w, &at_most(1)).await;
    assert_eq!(claim(&w).await.len(), 0, "more run than may");
    for job in &running {
        // The first two ends make no room.
        assert_applied(&w.succeed(job).await);
    }
    w.advance(SECOND);
    assert_eq!(claim(&w).await.len(), 1);
}

#[tokio::test]
async fn a_claim_does_not_come_back_for_a_gate_that_nobody_waits_behind_any_more() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"rate":"1/1h","burst":1}}}"#).await;
    w.put_all(vec![keyed("k"); 2]).await;
    let hour = Millis::from_secs(3600);
    let first = w.claim(&["default"], 10).await;
    assert_eq!((first.jobs.len(), first.next_due), (1, Some(w.now() + hour)), "one is parked");
    assert_applied(&w.succeed(&first.jobs[0]).await);
    w.advance(hour);
    let second = w.claim(&["default"], 10).await;
    assert_eq!((second.jobs.len(), second.next_due), (1, None), "after the claim that took the last one");
    assert_applied(&w.succeed(&second.jobs[0]).await);
    assert_eq!(w.claim(&["default"], 10).await.next_due, None, "after its attempt has ended");
}
