//! Parked jobs and their gates: each belongs to its tenant, queue and key, and only a claim that may take a job does.

use super::world;
use crate::world::*;
use windlass::core::gate::{Hold, HoldOrigin};
use windlass::core::job::{Kind, QueueName};
use windlass::core::{Executor, Failure, Millis, Outcome, Priority, Timestamp};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob, RunAt};
use windlass::low_level::stores::{
    Claim, Claimed, GateName, GateStatus, Kinds, Leases, Replay, ReplayOnly, Replayed, Scope, SettingKey, Share,
    Spacing, Store,
};

const ONE_OF_EACH: &str = r#"{"limits":{"perKey":{"concurrency":1}}}"#;
const HOUR: Millis = Millis::from_secs(3600);
/// More gates than one claim opens.
const MANY: usize = 300;

fn keyed(key: &str) -> NewJob {
    NewJob { limit_key: Some(key.into()), ..job() }
}

fn keyed_in(owner: &str, queue: &str, key: &str) -> NewJob {
    NewJob { tenant: tenant(owner), queue: QueueName::new(queue).unwrap(), ..keyed(key) }
}

/// Limits queues of these names, whatever the tenant.
async fn limit(w: &World, queues: &[&str], settings: &str) {
    for name in queues {
        let key = SettingKey::Queue { tenant: None, name: (*name).into() };
        w.store.put_setting(&key, Some(settings)).await.unwrap();
    }
}

async fn claim_of(w: &World, owner: &str, queue: &str, slots: u32) -> Claimed {
    let name = QueueName::new(queue).unwrap();
    let queue = w.store.register_queue(&tenant(owner), &name, Executor::Worker).await.unwrap().id;
    w.store.claim(w.request_shares(vec![Share { queue, slots, ahead: 0 }])).await.unwrap()
}

async fn claim_kind(w: &World, store: &dyn Store, kind: &str) -> Claimed {
    let kinds: Kinds = [Kind::new(kind).unwrap()].into_iter().collect();
    let leases = Leases::Each((0..10).map(|_| LeaseId::draw(&w.random)).collect());
    let claim = Claim { kinds: Some(kinds), leases, limit: 10, ..w.request(&["default"], 10).await };
    store.claim(claim).await.unwrap()
}

fn gate(owner: &str, queue: &str, key: &str) -> GateName {
    GateName { tenant: Some(tenant(owner)), queue: QueueName::new(queue).unwrap(), key: Some(key.into()) }
}

async fn hold(w: &World, name: &GateName, until: Timestamp) {
    let hold = Hold { since: w.now(), until, origin: HoldOrigin::Operator("ann".into()), reason: String::new() };
    w.store.put_hold(name, Some(&hold)).await.unwrap();
}

async fn gates(w: &World, scope: &Scope, queue: Option<&str>) -> Vec<GateStatus> {
    let queue = queue.map(|name| QueueName::new(name).unwrap());
    w.store.gates(scope, queue.as_ref(), 1000).await.unwrap()
}

async fn succeed_all(w: &World, jobs: &[ClaimedJob]) {
    for job in jobs {
        assert_applied(&w.succeed(job).await);
    }
}

/// A node reads limits from time to time, so for a moment it may not know that a queue has one.
#[tokio::test]
async fn a_node_that_has_not_read_a_limit_takes_nothing_that_is_parked() {
    let w = world().await;
    // A job that lost its worker: a claim takes such jobs with more care.
    let suspect = w.put(keyed("k")).await;
    w.claim_one().await;
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 1);
    w.advance(HOUR);
    let other = w.reopened().await;
    let elsewhere = w.request(&["elsewhere"], 5).await;
    assert!(other.claim(elsewhere).await.unwrap().jobs.is_empty());
    limit(&w, &["default"], ONE_OF_EACH).await;
    let urgent = w.put(NewJob { priority: Priority::Highest, ..keyed("k") }).await;
    assert_eq!(ids(&w.claim(&["default"], 5).await), [urgent]);
    let parked = async || w.store.parked(&[suspect]).await.unwrap().len();
    assert_eq!(parked().await, 1);
    // One after the other: the suspect alone, then with a job that is none.
    for _ in 0..2 {
        let request = w.request(&["default"], 5).await;
        assert!(other.claim(request).await.unwrap().jobs.is_empty());
        assert!(claim_kind(&w, &*other, "email").await.jobs.is_empty());
        w.put(keyed("k")).await;
        assert!(w.claim(&["default"], 5).await.jobs.is_empty());
    }
    let plain = w.put(job()).await;
    let request = w.request(&["default"], 5).await;
    assert_eq!(ids(&other.claim(request).await.unwrap()), [plain]);
}

#[tokio::test]
async fn a_node_that_has_not_read_a_limit_takes_no_parked_job_among_others() {
    let w = world().await;
    let other = w.reopened().await;
    let elsewhere = w.request(&["elsewhere"], 5).await;
    assert!(other.claim(elsewhere).await.unwrap().jobs.is_empty());
    limit(&w, &["default"], ONE_OF_EACH).await;
    w.put_all(vec![keyed("k"), keyed("k"), keyed("k")]).await;
    assert_eq!(w.claim(&["default"], 5).await.jobs.len(), 1);
    let plain = w.put(job()).await;
    let request = w.request(&["default"], 5).await;
    assert_eq!(ids(&other.claim(request).await.unwrap()), [plain]);
}

#[tokio::test]
async fn parked_jobs_hide_no_other_from_a_claim_of_some_kinds() {
    let w = world().await;
    let other = w.reopened().await;
    let elsewhere = w.request(&["elsewhere"], 5).await;
    assert!(other.claim(elsewhere).await.unwrap().jobs.is_empty());
    limit(&w, &["default"], ONE_OF_EACH).await;
    // More than a claim of some kinds looks at.
    w.put_all(vec![keyed("k"); 1200]).await;
    let mut running = 0;
    for _ in 0..4 {
        running += w.claim(&["default"], 1000).await.jobs.len();
        w.advance(Millis::new(1));
    }
    assert_eq!(running, 1);
    let parked = claim_kind(&w, &*other, "email").await;
    assert_eq!((parked.jobs.len(), parked.next_due), (0, None), "there is nothing to come back for");
    let plain = w.put(job()).await;
    assert_eq!(ids(&claim_kind(&w, &*other, "email").await), [plain]);
}

#[tokio::test]
async fn a_claim_of_some_kinds_takes_no_parked_job_of_another() {
    let w = world().await;
    limit(&w, &["default"], ONE_OF_EACH).await;
    let of = |kind: &str| NewJob { kind: Kind::new(kind).unwrap(), ..keyed("k") };
    let stored = w.put_all(vec![of("first"), of("theirs"), of("mine")]).await;
    let first = w.claim(&["default"], 5).await.jobs;
    assert_eq!((first.len(), w.store.parked(&stored).await.unwrap().len()), (1, 2));
    succeed_all(&w, &first).await;
    assert_eq!(ids(&claim_kind(&w, &*w.store, "mine").await), [stored[2]]);
}

#[tokio::test]
async fn a_limited_job_starts_neither_early_nor_late() {
    let w = world().await;
    limit(&w, &["default"], ONE_OF_EACH).await;
    let by = |key: &str, seconds| NewJob { start_by: Some(w.now() + Millis::from_secs(seconds)), ..keyed(key) };
    w.put(keyed("k")).await;
    let running = w.claim(&["default"], 5).await.jobs;
    let in_time = w.put_all(vec![by("k", 1), by("k", 2)]).await[1];
    assert!(w.claim(&["default"], 5).await.jobs.is_empty(), "both are parked");
    w.put(by("late", 1)).await;
    let early = w.put(NewJob { run_at: RunAt::After(SECOND + Millis::new(1)), ..keyed("early") }).await;
    w.advance(SECOND);
    assert_eq!(ids(&w.claim(&["default"], 5).await), [], "one may no longer start, one not yet");
    succeed_all(&w, &running).await;
    assert_eq!(ids(&w.claim(&["default"], 5).await), [in_time], "the one parked before it may no longer start");
    w.advance(Millis::new(1));
    assert_eq!(ids(&w.claim(&["default"], 5).await), [early]);
}

#[tokio::test]
async fn a_gate_belongs_to_its_tenant_and_queue() {
    let w = world().await;
    let places = [("default", "default"), ("default", "other"), ("acme", "default")];
    limit(&w, &["default", "other"], ONE_OF_EACH).await;
    for (place, (owner, queue)) in places.into_iter().enumerate() {
        w.put_all(vec![keyed_in(owner, queue, "k"); place + 2]).await;
        assert_eq!(claim_of(&w, owner, queue, 10).await.jobs.len(), 1, "{owner} {queue}");
    }
    let listed = async |scope: &Scope, queue: Option<&str>| {
        let gates = gates(&w, scope, queue).await;
        gates.into_iter().map(|status| (status.name, status.parked)).collect::<Vec<_>>()
    };
    let of_all = listed(&Scope::All, Some("default")).await;
    assert_eq!(of_all, [(gate("acme", "default", "k"), 3), (gate("default", "default", "k"), 1)]);
    let acme = Scope::Tenant(tenant("acme"));
    assert_eq!(listed(&acme, Some("default")).await, [(gate("acme", "default", "k"), 3)]);
    assert_eq!(listed(&Scope::All, None).await, [], "none of them is held");
    hold(&w, &gate("default", "other", "k"), w.now() + HOUR).await;
    assert_eq!(listed(&Scope::All, None).await, [(gate("default", "other", "k"), 2)]);
    assert_eq!(listed(&acme, None).await, []);
}

#[tokio::test]
async fn open_gates_of_others_do_not_hide_those_of_a_queue() {
    for (owner, queue) in [("acme", "default"), ("default", "other"), ("default", "replay")] {
        let w = world().await;
        limit(&w, &["default", queue], ONE_OF_EACH).await;
        let theirs = (0..MANY)
            .flat_map(|n| [keyed_in(owner, queue, &format!("k{n}")), keyed_in(owner, queue, &format!("k{n}"))]);
        w.put_all(theirs.collect()).await;
        let mine = w.put_all(vec![keyed("mine"), keyed("mine")]).await;
        let first = w.claim(&["default"], 5).await.jobs;
        let mut running = Vec::new();
        for _ in 0..4 {
            running.extend(claim_of(&w, owner, queue, 1000).await.jobs);
            w.advance(Millis::new(1));
        }
        assert_eq!((first.len(), running.len()), (1, MANY));
        let commits = running.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect();
        w.store.commit(commits, vec![]).await.unwrap();
        w.advance(SECOND);
        succeed_all(&w, &first).await;
        assert_eq!(ids(&w.claim(&["default"], 5).await), [mine[1]], "beside {owner} {queue}");
    }
}

#[tokio::test]
async fn a_claim_comes_back_when_a_gate_of_its_own_opens() {
    let w = world().await;
    limit(&w, &["default", "other", "replay"], ONE_OF_EACH).await;
    for (owner, queue) in [("acme", "default"), ("default", "other"), ("default", "replay")] {
        hold(&w, &gate(owner, queue, "k"), w.now() + HOUR).await;
        w.put(keyed_in(owner, queue, "k")).await;
        assert!(claim_of(&w, owner, queue, 5).await.jobs.is_empty());
    }
    w.put_all(vec![keyed("a"), keyed("a"), keyed("b"), keyed("b")]).await;
    let first = w.claim(&["default"], 5).await;
    assert_eq!((first.jobs.len(), first.next_due), (2, None), "the others are not its own");
    succeed_all(&w, &first.jobs).await;
    w.advance(SECOND);
    // Both keys are free, and there is one slot.
    let second = w.claim(&["default"], 1).await;
    assert_eq!((second.jobs.len(), second.next_due), (1, None), "no moment that has passed");
    limit(&w, &["default"], r#"{"limits":{"perKey":{"rate":"1/1h","burst":1}}}"#).await;
    w.put(keyed("c")).await;
    assert_eq!(w.claim(&["default"], 5).await.jobs.len(), 2);
    assert_eq!(w.claim(&["default"], 5).await.next_due, None, "nobody waits for the rate");
}

#[tokio::test]
async fn a_gate_that_is_in_use_or_has_parked_jobs_is_not_forgotten() {
    let w = world().await;
    limit(&w, &["default"], ONE_OF_EACH).await;
    w.put_all(vec![keyed("used"), keyed("idle"), keyed("held")]).await;
    hold(&w, &gate("default", "default", "held"), w.now() + SECOND).await;
    let running = w.claim(&["default"], 5).await.jobs;
    assert_eq!(running.len(), 2);
    succeed_all(&w, &running[1..]).await;
    w.advance(HOUR);
    w.store.prune().await.unwrap();
    let keys = async || {
        let gates = gates(&w, &Scope::All, Some("default")).await;
        gates.into_iter().map(|status| status.name.key.unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["held", "used"], "the idle one is gone");
    w.put(keyed("used")).await;
    let started = w.claim(&["default"], 5).await.jobs;
    assert_eq!(started.iter().map(|job| job.limit_key.as_deref()).collect::<Vec<_>>(), [Some("held")]);
}

#[tokio::test]
async fn a_gate_is_not_forgotten_at_once() {
    let w = world().await;
    limit(&w, &["default"], r#"{"limits":{"perKey":{"rate":"1/1h","burst":1}}}"#).await;
    w.put(keyed("k")).await;
    let first = w.claim(&["default"], 5).await.jobs;
    succeed_all(&w, &first).await;
    w.store.prune().await.unwrap();
    w.put(keyed("k")).await;
    assert!(w.claim(&["default"], 5).await.jobs.is_empty(), "its token was used");
}

#[tokio::test]
async fn a_gate_that_queues_share_lets_a_claim_take_only_its_own() {
    let w = world().await;
    let mut dead = Vec::new();
    for queue in ["default", "default", "other", "other"] {
        dead.push(w.put(job_in(queue)).await);
        let job = w.claim(&[queue], 1).await.jobs.remove(0);
        assert_applied(&w.commit(&job, Outcome::Failed(Failure::permanent("broken"))).await);
    }
    let again = Replay { spacing: Spacing::every(SECOND), ..Replay::new(dead.clone(), ReplayOnly::DeadLetters, "ann") };
    w.store.replay(&Scope::All, again).await.unwrap();
    // All of them are due. One starts, and the rate of the replay parks the others.
    w.advance(HOUR);
    assert_eq!(ids(&w.claim(&["default", "other"], 5).await), [dead[0]]);
    assert_eq!(w.store.parked(&dead).await.unwrap().len(), 3);
    let steps = [("other", Some(dead[2])), ("default", Some(dead[1])), ("default", None), ("other", Some(dead[3]))];
    for (queue, id) in steps {
        w.advance(SECOND);
        assert_eq!(ids(&w.claim(&[queue], 5).await).first().copied(), id, "{queue}");
    }
}

#[tokio::test]
async fn a_parked_job_that_is_replayed_asks_its_gates_again() {
    let w = world().await;
    limit(&w, &["default"], ONE_OF_EACH).await;
    let stored = w.put_all(vec![keyed("k"), keyed("k")]).await;
    assert_eq!(w.claim(&["default"], 5).await.jobs.len(), 1);
    let parked = async || w.store.parked(&stored).await.unwrap().len();
    assert_eq!(parked().await, 1);
    let again = Replay::new(vec![stored[1]], ReplayOnly::Any, "ann");
    assert_eq!(w.store.replay(&Scope::All, again).await.unwrap(), [Replayed::AlreadyLive]);
    assert_eq!(parked().await, 0);
    assert_eq!(w.claim(&["default"], 5).await.parked.len(), 1, "it is refused again");
}
