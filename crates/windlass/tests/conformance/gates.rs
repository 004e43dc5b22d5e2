//! Flow control: limits, rates, holds, breakers and budgets, whatever the store.

use super::world;
use crate::world::*;
use std::collections::BTreeMap;
use windlass::core::gate::{BreakerState, Hold, HoldOrigin};
use windlass::core::job::{Kind, QueueName};
use windlass::core::policy::Partial;
use windlass::core::{Delivery, Executor, Failure, JobId, Millis, Outcome, Priority, Progress, State, Timestamp};
use windlass::low_level::job::{ClaimedJob, HttpCall, LeaseId, NewJob};
use windlass::low_level::stores::{
    Amend, Cancelled, Claim, Claimed, GateName, Kinds, Leases, Reap, Scope, SettingKey, Share, Spared,
};

fn keyed(key: &str) -> NewJob {
    NewJob { limit_key: Some(key.into()), ..job() }
}

/// Sets the flow settings of the queue `default` for every tenant.
async fn flow(w: &World, settings: &str) {
    flow_of(w, None, "default", settings).await;
}

async fn flow_of(w: &World, owner: Option<&str>, queue: &str, settings: &str) {
    let key = SettingKey::Queue { tenant: owner.map(tenant), name: queue.into() };
    w.store.put_setting(&key, Some(settings)).await.unwrap();
}

fn gate(key: Option<&str>) -> GateName {
    let queue = QueueName::new("default").unwrap();
    GateName { tenant: Some(tenant("default")), queue, key: key.map(Into::into) }
}

async fn claim(w: &World, slots: u32) -> Claimed {
    w.claim(&["default"], slots).await
}

fn count(jobs: &[ClaimedJob]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.limit_key.as_deref().unwrap_or("-").to_owned()).or_default() += 1;
    }
    counts
}

async fn release(w: &World, job: &ClaimedJob) {
    assert_applied(&w.commit(job, Outcome::Released(Progress::NotStarted)).await);
}

fn unavailable() -> Outcome {
    Outcome::Failed(Failure::new("it is down").class("Unavailable"))
}

#[tokio::test]
async fn a_queue_never_runs_more_than_its_concurrency() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":3}}"#).await;
    w.put_all((0..10).map(|_| job()).collect()).await;
    let first = claim(&w, 10).await.jobs;
    assert_eq!(first.len(), 3);
    assert_eq!(claim(&w, 10).await.jobs.len(), 0);
    w.succeed(&first[0]).await;
    w.fail(&first[1]).await;
    assert_eq!(claim(&w, 10).await.jobs.len(), 2, "as many as ended");
    assert_eq!(claim(&w, 10).await.jobs.len(), 0);
}

#[tokio::test]
async fn a_key_at_its_limit_does_not_delay_the_others() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    let mut jobs: Vec<NewJob> = (0..300).map(|_| keyed("busy")).collect();
    jobs.extend([keyed("a"), keyed("b"), job()]);
    w.put_all(jobs).await;
    let mut taken = Vec::new();
    // A claim may look at a part of the backlog only, but says when to go on.
    for _ in 0..10 {
        let claimed = claim(&w, 10).await;
        let again = claimed.next_due;
        taken.extend(claimed.jobs);
        w.advance(again.map_or(Millis::ZERO, |at| at.since(w.now())).min(Millis::new(5)));
    }
    let counts = count(&taken);
    assert_eq!(counts, BTreeMap::from([("-".into(), 1), ("a".into(), 1), ("b".into(), 1), ("busy".into(), 1)]));
}

#[tokio::test]
async fn jobs_of_a_key_start_in_the_order_of_the_queue() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    let first = w.put(keyed("k")).await;
    let next = w.put(keyed("k")).await;
    let mut running = claim(&w, 5).await.jobs;
    let urgent = w.put(NewJob { priority: Priority::Highest, ..keyed("k") }).await;
    let mut started = Vec::new();
    while let Some(job) = running.pop() {
        started.push(job.id);
        assert_applied(&w.succeed(&job).await);
        running = claim(&w, 5).await.jobs;
    }
    assert_eq!(started, [first, urgent, next]);
}

#[tokio::test]
async fn a_lost_workers_slot_comes_back_once_when_its_lease_is_reaped() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":2}}"#).await;
    w.put_all((0..6).map(|_| job()).collect()).await;
    let lost = claim(&w, 5).await.jobs;
    assert_eq!(lost.len(), 2);
    w.advance(LEASE + SECOND);
    assert_eq!(claim(&w, 5).await.jobs.len(), 0, "a lease ends when it is reaped");
    assert_eq!(w.reap().await.len(), 2);
    assert_eq!(claim(&w, 5).await.jobs.len(), 2);
    for job in &lost {
        w.succeed(job).await;
    }
    assert_eq!(w.reap().await.len(), 0);
    assert_eq!(claim(&w, 5).await.jobs.len(), 0, "what a stale worker reports frees nothing");
}

#[tokio::test]
async fn a_rate_is_kept_also_after_a_pause() {
    let w = world().await;
    flow(&w, r#"{"limits":{"rate":"10/1s","burst":2}}"#).await;
    w.put_all((0..200).map(|_| job()).collect()).await;
    let queue = QueueName::new("default").unwrap();
    w.store.pause_queue(&tenant("default"), &queue, true).await.unwrap();
    w.advance(Millis::from_secs(60));
    w.store.pause_queue(&tenant("default"), &queue, false).await.unwrap();
    let mut starts: Vec<Timestamp> = Vec::new();
    for _ in 0..100 {
        let claimed = claim(&w, 50).await;
        starts.extend(claimed.jobs.iter().map(|_| w.now()));
        let next = claimed.next_due.expect("more jobs wait for the rate");
        assert!(next > w.now());
        w.clock.advance(next.since(w.now()));
    }
    assert_eq!(starts.iter().filter(|at| **at == starts[0]).count(), 2, "the burst");
    for (nth, at) in starts.iter().enumerate() {
        let within = starts[nth..].iter().filter(|other| other.since(*at) < SECOND).count();
        assert!(within <= 12, "{within} starts in a second");
    }
    let span = starts[starts.len() - 1].since(starts[0]).get() as usize;
    assert!(span <= (starts.len() - 2) * 100 + 100, "{} starts took {span} ms", starts.len());
}

#[tokio::test]
async fn a_job_given_back_unstarted_returns_its_token() {
    let w = world().await;
    flow(&w, r#"{"limits":{"rate":"1/1h","burst":1}}"#).await;
    w.put_all(vec![job(), job()]).await;
    let first = claim(&w, 5).await.jobs;
    assert_eq!(first.len(), 1);
    release(&w, &first[0]).await;
    assert_eq!(claim(&w, 5).await.jobs.len(), 1);
    assert_eq!(claim(&w, 5).await.jobs.len(), 0);
}

#[tokio::test]
async fn queue_and_key_limits_apply_together_and_a_refusal_consumes_nothing() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":3,"rate":"3/1h","burst":3,"perKey":{"concurrency":1}}}"#).await;
    w.put_all(vec![keyed("a"), keyed("a"), keyed("a"), keyed("b"), keyed("c"), keyed("d")]).await;
    let taken = claim(&w, 10).await.jobs;
    assert_eq!(count(&taken), BTreeMap::from([("a".into(), 1), ("b".into(), 1), ("c".into(), 1)]));
}

#[tokio::test]
async fn a_changed_limit_applies_to_what_waits_and_is_parked() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    w.put_all((0..6).map(|_| keyed("k")).collect()).await;
    assert_eq!(claim(&w, 10).await.jobs.len(), 1);
    assert_eq!(claim(&w, 10).await.jobs.len(), 0);
    flow(&w, r#"{"limits":{"perKey":{"concurrency":3}}}"#).await;
    assert_eq!(claim(&w, 10).await.jobs.len(), 2);
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    assert_eq!(claim(&w, 10).await.jobs.len(), 0, "lowering lets what runs finish");
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, None).await.unwrap();
    assert_eq!(claim(&w, 10).await.jobs.len(), 3, "without the limit everything starts");
}

#[tokio::test]
async fn each_tenant_has_its_own_limit_unless_it_is_across_all() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":1}}"#).await;
    flow_of(&w, None, "shared", r#"{"limits":{"concurrency":1,"across":"all"}}"#).await;
    let mut shares = BTreeMap::new();
    for owner in ["acme", "zeta"] {
        for queue in ["default", "shared"] {
            w.put_all((0..2).map(|_| NewJob { tenant: tenant(owner), ..job_in(queue) }).collect()).await;
            let name = QueueName::new(queue).unwrap();
            let row = w.store.register_queue(&tenant(owner), &name, Executor::Worker).await.unwrap();
            shares.entry(queue).or_insert_with(Vec::new).push(Share { queue: row.id, slots: 5, ahead: 0 });
        }
    }
    let own = w.store.claim(w.request_shares(shares["default"].clone())).await.unwrap();
    assert_eq!(own.jobs.len(), 2);
    let shared = w.store.claim(w.request_shares(shares["shared"].clone())).await.unwrap();
    assert_eq!(shared.jobs.len(), 1);
}

#[tokio::test]
async fn a_held_key_waits_and_no_attempt_is_charged() {
    let w = world().await;
    w.put_all(vec![keyed("a"), keyed("a"), keyed("b")]).await;
    let until = w.now() + Millis::from_secs(60);
    let hold =
        Hold { since: w.now(), until, origin: HoldOrigin::Operator("ann".into()), reason: "maintenance".into() };
    assert!(!w.store.put_hold(&gate(Some("a")), Some(&hold)).await.unwrap());
    let claimed = claim(&w, 10).await;
    assert_eq!(count(&claimed.jobs), BTreeMap::from([("b".into(), 1)]));
    let claimed = claim(&w, 10).await;
    assert_eq!((claimed.jobs.len(), claimed.next_due), (0, Some(until)));
    let shut = w.store.gates(&Scope::All, None, 10).await.unwrap();
    assert_eq!(shut.iter().map(|gate| (&gate.name, gate.parked)).collect::<Vec<_>>(), [(&gate(Some("a")), 2)]);
    w.advance(Millis::from_secs(60));
    let first = claim(&w, 10).await.jobs;
    assert_eq!(first.len(), 1, "starts are slow after a hold");
    assert_eq!(first[0].attempt, 1);
    w.advance(SECOND);
    assert_eq!(claim(&w, 10).await.jobs.len(), 1);
}

#[tokio::test]
async fn a_held_queue_starts_nothing_until_it_is_released() {
    let w = world().await;
    w.put_all(vec![keyed("a"), job()]).await;
    let until = w.now() + Millis::from_secs(3600);
    let hold = Hold { since: w.now(), until, origin: HoldOrigin::Operator("ann".into()), reason: String::new() };
    w.store.put_hold(&gate(None), Some(&hold)).await.unwrap();
    assert_eq!(claim(&w, 10).await.jobs.len(), 0);
    assert!(w.store.put_hold(&gate(None), None).await.unwrap(), "it was held");
    assert_eq!(claim(&w, 10).await.jobs.len(), 1);
    w.advance(SECOND);
    assert_eq!(claim(&w, 10).await.jobs.len(), 1);
}

#[tokio::test]
async fn retry_after_holds_the_destination_for_every_job() {
    let w = world().await;
    let call = |url: &str| NewJob {
        executor: Executor::Http,
        http: Some(
            HttpCall { method: "POST".into(), url: url.into(), headers: vec![], secret: None, webhook_id: None }.into(),
        ),
        ..job()
    };
    w.put_all(vec![call("https://slow.example/1"), call("https://slow.example/2"), call("https://ok.example/")]).await;
    let queue = QueueName::new("default").unwrap();
    let row = w.store.register_queue(&tenant("default"), &queue, Executor::Http).await.unwrap();
    let share = |slots| vec![Share { queue: row.id, slots, ahead: 0 }];
    let first = w.store.claim(w.request_shares(share(1))).await.unwrap().jobs;
    let busy = Failure { status: Some(429), ..Failure::new("too many").class("RateLimited") };
    let busy = Outcome::Failed(busy.retry_after(Millis::from_secs(120)));
    assert_applied(&w.commit(&first[0], busy).await);
    let claimed = w.store.claim(w.request_shares(share(10))).await.unwrap();
    let urls: Vec<&str> = claimed.jobs.iter().map(|job| job.http.as_ref().unwrap().url.as_str()).collect();
    assert_eq!(urls, ["https://ok.example/"]);
    let parked = w.store.gates(&Scope::All, None, 10).await.unwrap();
    assert_eq!(parked[0].name.key.as_deref(), Some("https://slow.example:443"));
    assert_eq!(parked[0].gate.held(w.now()).unwrap().until, w.now() + Millis::from_secs(120));
    w.advance(Millis::from_secs(120));
    assert_eq!(w.store.claim(w.request_shares(share(10))).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn a_breaker_opens_probes_and_closes() {
    let w = world().await;
    flow(&w, r#"{"breaker":{"minimum":3,"window":"1m","openFor":"30s"}}"#).await;
    w.put_all((0..20).map(|_| keyed("api")).collect()).await;
    for job in claim(&w, 3).await.jobs {
        assert!(!job.is_probe);
        w.commit(&job, unavailable()).await;
    }
    assert_eq!(claim(&w, 10).await.jobs.len(), 0, "the breaker is open");
    w.advance(Millis::from_secs(30));
    let probe = claim(&w, 10).await.jobs;
    assert_eq!(probe.len(), 1);
    assert!(probe[0].is_probe);
    let held = w.store.held(vec![probe[0].lease]).await.unwrap();
    assert!(held[0].is_probe, "a probe is known after an unknown outcome too");
    assert_eq!(claim(&w, 10).await.jobs.len(), 0, "one probe at a time");
    w.commit(&probe[0], unavailable()).await;
    w.advance(Millis::from_secs(59));
    assert_eq!(claim(&w, 10).await.jobs.len(), 0, "a failed probe doubles the wait");
    w.advance(SECOND);
    let probe = claim(&w, 10).await.jobs;
    assert_eq!(probe.len(), 1);
    w.succeed(&probe[0]).await;
    let state = &w.store.gates(&Scope::All, Some(&QueueName::new("default").unwrap()), 10).await.unwrap();
    let api = state.iter().find(|status| status.name == gate(Some("api"))).unwrap();
    assert_eq!(api.gate.breaker(w.now()), BreakerState::Closed);
    assert_eq!(claim(&w, 10).await.jobs.len(), 1, "starts are slow after a breaker");
    w.advance(SECOND);
    assert_eq!(claim(&w, 10).await.jobs.len(), 2);
}

#[tokio::test]
async fn a_retry_budget_delays_retries_and_never_first_attempts() {
    let w = world().await;
    flow(&w, r#"{"retryBudget":{"share":"10%","minimum":1}}"#).await;
    w.put_all((0..30).map(|_| job()).collect()).await;
    for job in claim(&w, 30).await.jobs {
        w.fail(&job).await;
    }
    w.advance(Millis::from_secs(10));
    let retries = claim(&w, 100).await.jobs;
    assert_eq!(retries.len(), 10, "one per second over ten seconds");
    w.put_all((0..5).map(|_| job()).collect()).await;
    assert_eq!(claim(&w, 100).await.jobs.len(), 5, "first attempts go on");
    w.advance(Millis::from_secs(30));
    assert!(!claim(&w, 100).await.jobs.is_empty(), "the budget comes back");
}

#[tokio::test]
async fn a_limit_per_key_does_not_bound_how_many_retries_a_budget_lets_go() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}},"retryBudget":{"share":"10%","minimum":1}}"#).await;
    w.put_all((0..30).map(|n| keyed(&format!("k{n}"))).collect()).await;
    for job in claim(&w, 30).await.jobs {
        w.fail(&job).await;
    }
    for _ in 0..2 {
        w.advance(Millis::from_secs(60));
        assert_eq!(claim(&w, 100).await.jobs.len(), 10, "one per second over ten seconds");
    }
}

#[tokio::test]
async fn parked_jobs_are_counted_cancelled_amended_expired_and_listed_like_others() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    let late = NewJob { start_by: Some(w.now() + Millis::from_secs(5)), ..keyed("k") };
    let all = w.put_all(vec![keyed("k"), keyed("k"), keyed("k"), late, keyed("k")]).await;
    let running = claim(&w, 10).await.jobs;
    assert_eq!(running.len(), 1);
    let parked: Vec<JobId> = w.store.parked(&all).await.unwrap().into_iter().map(|parked| parked.job).collect();
    assert_eq!(parked.len(), 4);
    let depth = &w.store.depths(&Scope::All).await.unwrap()[0];
    assert_eq!((depth.due, depth.later, depth.running, depth.oldest_due), (4, 0, 1, None));
    assert_eq!(w.store.cancel(&Scope::All, vec![all[1]]).await.unwrap(), [Cancelled::Now]);
    let later = w.now() + Millis::from_secs(60);
    w.store.amend(&Scope::All, all[2], Amend { priority: None, run_at: Some(later) }).await.unwrap();
    w.advance(Millis::from_secs(6));
    assert_eq!(w.store.expire(10).await.unwrap().len(), 1);
    let depth = &w.store.depths(&Scope::All).await.unwrap()[0];
    assert_eq!((depth.due, depth.later, depth.running), (1, 1, 1));
    w.succeed(&running[0]).await;
    assert_eq!(ids(&claim(&w, 10).await), [all[4]]);
    let states: Vec<State> = vec![w.get(all[1]).await.state, w.get(all[2]).await.state, w.get(all[3]).await.state];
    assert_eq!(states, [State::Cancelled, State::Queued, State::Failed]);
    assert_eq!(w.get(all[2]).await.due_at, later);
}

#[tokio::test]
async fn an_at_most_once_job_behind_a_limit_starts_into_a_free_slot_only() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":5}}}"#).await;
    let once = |key| NewJob { delivery: Delivery::AtMostOnce, ..keyed(key) };
    w.put_all(vec![once("a"), once("a"), once("a")]).await;
    let queue = w.queue_id("default").await;
    let ahead = Share { queue, slots: 1, ahead: 100 };
    assert_eq!(w.store.claim(w.request_shares(vec![ahead])).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn jobs_behind_a_limit_on_concurrency_are_taken_ahead_and_count_as_running() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":9,"perKey":{"concurrency":5}}}"#).await;
    w.put_all((0..40).map(|n| keyed(["a", "b"][n % 2])).collect()).await;
    let queue = w.queue_id("default").await;
    let taken = async |slots, ahead| {
        w.store.claim(w.request_shares(vec![Share { queue, slots, ahead }])).await.unwrap().jobs
    };
    let first = taken(1, 100).await;
    assert_eq!(first.len(), 9, "as many as the limits allow");
    assert_eq!(taken(1, 100).await.len(), 0);
    w.succeed(&first[0]).await;
    assert_eq!(taken(0, 100).await.len(), 1, "without a free slot too");
    w.commit(&first[1], Outcome::Released(Progress::NotStarted)).await;
    assert_eq!(taken(0, 100).await.len(), 1, "a job that was given back frees its place");
}

#[tokio::test]
async fn jobs_whose_moment_counts_are_taken_into_free_slots_only() {
    let limits = [
        r#"{"limits":{"rate":"100/1s","burst":100}}"#,
        r#"{"limits":{"perKey":{"rate":"100/1s","burst":100}}}"#,
        r#"{"limits":{"perKey":{"concurrency":100}},"breaker":{"minimum":3,"window":"1m","openFor":"30s"}}"#,
        r#"{"limits":{"concurrency":100},"retryBudget":{"share":"10%","minimum":1}}"#,
    ];
    for settings in limits {
        let w = world().await;
        flow(&w, settings).await;
        w.put_all((0..20).map(|_| keyed("a")).collect()).await;
        let ahead = Share { queue: w.queue_id("default").await, slots: 2, ahead: 100 };
        assert_eq!(w.store.claim(w.request_shares(vec![ahead])).await.unwrap().jobs.len(), 2, "{settings}");
    }
}

#[tokio::test]
async fn two_processes_share_a_limit() {
    let w = world().await;
    flow(&w, r#"{"limits":{"concurrency":4,"perKey":{"concurrency":2}}}"#).await;
    w.put_all((0..40).map(|n| keyed(["a", "b", "c"][n % 3])).collect()).await;
    let other = w.reopened().await;
    let (mut first, mut second) = (0, 0);
    for _ in 0..5 {
        let (one, two) = (w.request(&["default"], 10).await, w.request(&["default"], 10).await);
        let (one, two) = tokio::join!(w.store.claim(one), other.claim(two));
        first += one.unwrap().jobs.len();
        second += two.unwrap().jobs.len();
    }
    assert_eq!(first + second, 4);
}

#[tokio::test]
async fn gates_that_hold_nothing_are_forgotten() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":2}}}"#).await;
    w.put_all((0..20).map(|n| keyed(&format!("k{n}"))).collect()).await;
    for job in claim(&w, 100).await.jobs {
        w.succeed(&job).await;
    }
    let queue = QueueName::new("default").unwrap();
    assert_eq!(w.store.gates(&Scope::All, Some(&queue), 100).await.unwrap().len(), 20);
    w.advance(Millis::from_secs(3600));
    w.store.prune().await.unwrap();
    assert_eq!(w.store.gates(&Scope::All, Some(&queue), 100).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_queue_without_limits_touches_no_gate() {
    let w = world().await;
    w.put_all((0..5).map(|_| keyed("k")).collect()).await;
    let jobs = claim(&w, 10).await.jobs;
    assert_eq!(jobs.len(), 5);
    w.fail(&jobs[0]).await;
    w.store.reap(Reap::Expired { spared: Spared::none() }, 10).await.unwrap();
    let queue = QueueName::new("default").unwrap();
    assert!(w.store.gates(&Scope::All, Some(&queue), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_worker_of_some_kinds_takes_those_from_a_limited_queue_too() {
    let w = world().await;
    flow(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    let of = |kind: &str, key: &str| NewJob { kind: Kind::new(kind).unwrap(), ..keyed(key) };
    w.put_all((0..1500).map(|_| of("other", "k")).collect()).await;
    let mine = w.put_all(vec![of("mine", "k"), of("mine", "k"), of("mine", "m")]).await;
    let kinds: Kinds = [Kind::new("mine").unwrap()].into_iter().collect();
    let mut taken = Vec::new();
    for _ in 0..4 {
        let leases = Leases::Each((0..10).map(|_| LeaseId::draw(&w.random)).collect());
        let request = w.request(&["default"], 10).await;
        let claim = Claim { kinds: Some(kinds.clone()), leases, limit: 10, ..request };
        taken.extend(w.store.claim(claim).await.unwrap().jobs);
        w.advance(Millis::new(5));
    }
    assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [mine[0], mine[2]]);
    w.succeed(&taken[0]).await;
    let leases = Leases::Each(vec![LeaseId::draw(&w.random)]);
    let claim = Claim { kinds: Some(kinds), leases, limit: 1, ..w.request(&["default"], 10).await };
    assert_eq!(ids(&w.store.claim(claim).await.unwrap()), [mine[1]]);
}

#[tokio::test]
async fn an_error_rule_holds_a_key_or_discards_the_job() {
    let w = world().await;
    let rules = r#"{"policy":"fixed","rules":[{"match":{"class":"Busy"},"then":"hold","for":"30s"},
                   {"match":{"class":"Useless"},"then":"discard"}]}"#;
    let policy = Partial::from_json(&serde_json::from_str(rules).unwrap(), &|_| None).unwrap();
    let policy = std::sync::Arc::new(Partial::resolve(&[policy], &[]).unwrap());
    let with_rules = |key: &str| NewJob { policy: policy.clone(), ..keyed(key) };
    let all = w.put_all(vec![with_rules("a"), with_rules("a"), with_rules("b")]).await;
    let jobs = claim(&w, 1).await.jobs;
    assert_applied(&w.commit(&jobs[0], Outcome::Failed(Failure::new("slow down").class("Busy"))).await);
    assert_eq!(w.get(all[0]).await.failures, 0, "a hold counts no failure");
    let others = claim(&w, 10).await.jobs;
    assert_eq!(ids(&Claimed { jobs: others.clone(), ..Claimed::default() }), [all[2]]);
    assert_applied(&w.commit(&others[0], Outcome::Failed(Failure::new("no use").class("Useless"))).await);
    let useless = w.get(all[2]).await;
    assert_eq!((useless.state, useless.discarded_at.is_some()), (State::Failed, true));
    assert_eq!(w.store.depths(&Scope::All).await.unwrap()[0].dead, 0);
    w.advance(Millis::from_secs(30));
    assert_eq!(claim(&w, 10).await.jobs.len(), 1, "the key is free again, slowly");
}

#[tokio::test]
async fn a_limit_applies_to_a_queue_that_is_used_for_the_first_time() {
    let w = world().await;
    flow_of(&w, None, "new", r#"{"limits":{"concurrency":1}}"#).await;
    assert!(claim(&w, 5).await.jobs.is_empty(), "the node reads the settings");
    w.put_all((0..3).map(|_| job_in("new")).collect()).await;
    assert_eq!(w.claim(&["new"], 5).await.jobs.len(), 1);
}
