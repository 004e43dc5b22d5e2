use super::rules::Picture;
use super::*;
use crate::clock::Clock;
use crate::job::NewJob;
use crate::store::JobLife;
use crate::store::Reads;
use crate::store::Registry;
use crate::store::memory::MemoryStore;
use crate::store::{Atomicity, Options, Scope};
use crate::tally::Tally;
use std::sync::Arc;
use windlass_core::Executor;
use windlass_core::job::{Kind, QueueName};
use windlass_core::policy::Partial;

const START: Timestamp = Timestamp::from_millis(1_767_268_800_000);
const MINUTE: Millis = Millis::from_secs(60);

fn rule(measure: Measure) -> Rule {
    default_rules().into_iter().find(|r| r.measure == measure).unwrap()
}

fn reading(holds: bool) -> Reading {
    Reading { holds: holds.then(|| "3 dead letters".into()), ..Reading::default() }
}

#[test]
fn an_alert_fires_once_after_its_time_and_resolves_once() {
    let rule = rule(Measure::DeadLetters);
    let pending = step(None, &rule, &reading(true), START).unwrap();
    assert_eq!((pending.status, pending.incident), (AlertStatus::Pending, 1));
    assert_eq!(
        step(Some(&pending), &rule, &reading(true), START + Millis::from_secs(300)),
        None,
        "not more than 5 minutes"
    );
    let later = START + Millis::from_secs(301);
    let firing = step(Some(&pending), &rule, &reading(true), later).unwrap();
    assert_eq!((firing.status, firing.fired_at), (AlertStatus::Firing, Some(later)));
    assert_eq!(step(Some(&firing), &rule, &reading(true), later + MINUTE), None);
    let resolved = step(Some(&firing), &rule, &reading(false), later + MINUTE).unwrap();
    assert_eq!((resolved.status, resolved.resolved_at), (AlertStatus::Resolved, Some(later + MINUTE)));
    assert_eq!(news(Some(&pending), &firing, Some(&rule), later), Some(News::Fired));
    let known = Alert { notified_at: Some(later), ..firing.clone() };
    assert_eq!(news(Some(&known), &known, Some(&rule), later + MINUTE), None, "once per incident");
    let over = step(Some(&known), &rule, &reading(false), later + MINUTE).unwrap();
    assert_eq!(news(Some(&known), &over, Some(&rule), later + MINUTE), Some(News::Resolved));
    assert_eq!(step(Some(&resolved), &rule, &reading(false), later + MINUTE), None);
    assert_eq!(step(Some(&resolved), &rule, &reading(true), later + MINUTE).unwrap().incident, 2);
}

#[test]
fn what_passes_in_time_is_nobodys_business() {
    let rule = rule(Measure::DeadLetters);
    let pending = step(None, &rule, &reading(true), START).unwrap();
    let over = step(Some(&pending), &rule, &reading(false), START + MINUTE).unwrap();
    assert_eq!(news(Some(&pending), &over, Some(&rule), START + MINUTE), None);
    assert_eq!((over.status, over.fired_at), (AlertStatus::Resolved, None));
}

#[test]
fn quiet_hours_delay_the_report_and_reminders_come_at_their_interval() {
    // START is noon in UTC.
    let quiet = windlass_core::QuietHours::parse("11:30-13:00").ok();
    let rule = Rule { quiet, remind: Some(MINUTE), lasting: Millis::new(0), ..rule(Measure::DeadLetters) };
    let after = |span: u64| START + Millis::from_secs(span * 60);
    let firing = step(None, &rule, &reading(true), START).unwrap();
    assert_eq!(news(None, &firing, Some(&rule), START), None, "it is quiet");
    assert_eq!(news(Some(&firing), &firing, Some(&rule), after(59)), None);
    assert_eq!(news(Some(&firing), &firing, Some(&rule), after(60)), Some(News::Fired), "they have ended");
    let over = step(Some(&firing), &rule, &reading(false), after(59)).unwrap();
    assert_eq!(news(Some(&firing), &over, Some(&rule), after(59)), None, "nobody knows of it");
    let known = Alert { notified_at: Some(after(60)), ..firing };
    assert_eq!(news(Some(&known), &known, Some(&rule), after(60) + Millis::from_secs(59)), None);
    assert_eq!(news(Some(&known), &known, Some(&rule), after(61)), Some(News::Reminder));
    let next_noon = after(24 * 60);
    assert_eq!(news(Some(&known), &known, Some(&rule), next_noon), None, "no reminder while it is quiet");
    let over = step(Some(&known), &rule, &reading(false), next_noon).unwrap();
    assert_eq!(news(Some(&known), &over, Some(&rule), next_noon), Some(News::Resolved), "its end is always reported");
}

#[test]
fn a_rule_may_be_about_one_tenant() {
    let acme = crate::store::Queue { tenant: windlass_core::job::Tenant::new("acme").unwrap(), ..queue("a") };
    let tally = Tally { exhausted: 11, ..Tally::default() };
    let picture = Picture { recent: vec![(acme, Kind::new("email").unwrap(), tally)], ..Picture::default() };
    let of = |tenant: &str| Rule { tenant: Some(tenant.into()), ..rule(Measure::Exhausted) };
    assert!(of("acme").read(&picture, START).holds.is_some());
    assert!(of("other").read(&picture, START).holds.is_none());
}

fn queue(name: &str) -> crate::store::Queue {
    crate::store::Queue {
        id: crate::job::QueueId(1),
        tenant: Default::default(),
        name: QueueName::new(name).unwrap(),
        executor: Executor::Worker,
        paused: false,
        created_at: START,
    }
}

#[test]
fn a_paused_queue_keeps_its_dead_letters_but_nobody_is_late_in_it() {
    let picture = |queue: crate::store::Queue| Picture {
        depths: vec![crate::store::Depth {
            queue: queue.id,
            due: 1,
            later: 0,
            running: 0,
            dead: 1,
            oldest_due: Some(START - Millis::from_secs(3600)),
        }],
        queues: vec![queue],
        gates: Vec::new(),
        recent: Vec::new(),
    };
    let holds = |measure, queue| rule(measure).read(&picture(queue), START).holds.is_some();
    let paused = || crate::store::Queue { paused: true, ..queue("a") };
    assert!(holds(Measure::DeadLetters, queue("a")) && holds(Measure::OldestDue, queue("a")));
    assert!(holds(Measure::DeadLetters, paused()), "they await manual action, not a worker");
    assert!(!holds(Measure::OldestDue, paused()));
    let notices = || crate::store::Queue { executor: Executor::Http, ..queue(NOTICE_QUEUE) };
    assert!(!holds(Measure::DeadLetters, notices()) && !holds(Measure::OldestDue, notices()));
    assert!(holds(Measure::DeadLetters, queue(NOTICE_QUEUE)), "a tenant's own queue of that name");
}

#[test]
fn a_retry_rate_needs_a_minimum_count() {
    let picture = |kind: &str, retries, first_attempts| Picture {
        recent: vec![(queue("a"), Kind::new(kind).unwrap(), Tally { retries, first_attempts, ..Tally::default() })],
        ..Picture::default()
    };
    let rule = rule(Measure::RetryRate);
    assert!(rule.read(&picture("email", 5, 10), START).holds.is_none(), "too few attempts to judge");
    assert!(rule.read(&picture("email", 10, 100), START).holds.is_none(), "10 % is not above 10 %");
    assert!(rule.read(&picture("email", 11, 100), START).holds.is_some());
    assert!(rule.read(&picture(NOTICE_KIND, 11, 100), START).holds.is_none(), "notices are not counted");
    let other = Rule { queue: Some("b".into()), ..rule };
    assert!(other.read(&picture("email", 11, 100), START).holds.is_none());
}

#[tokio::test]
async fn dead_letters_ring_after_five_minutes_and_fall_silent_after_a_replay() {
    use crate::store::{Claim, Leases, Replay, ReplayOnly, Share, WorkerId};
    let clock = Clock::manual(START);
    let store = MemoryStore::new(Options { clock: clock.clone(), ..Options::default() });
    let policy = Partial::resolve(&[Partial::parse_line("once").unwrap()], &[]).unwrap();
    let new = NewJob::new(Kind::new("email").unwrap(), "{}", Arc::new(policy));
    let id = store.enqueue(vec![new], Atomicity::Each).await.unwrap()[0].id().unwrap();
    let share = Share { queue: store.queues().await.unwrap()[0].id, slots: 1, ahead: 0 };
    let claim = Claim {
        worker: WorkerId::new("w"),
        leases: Leases::Shared(crate::job::LeaseId(1)),
        lease_for: MINUTE,
        shares: vec![share],
        limit: 1,
        suspects: 1,
        kinds: None,
    };
    store.claim(claim).await.unwrap();
    clock.advance(MINUTE);
    store.reap(crate::store::Reap::Expired { spared: crate::store::Spared::none() }, 1).await.unwrap();

    let rules = [rule(Measure::DeadLetters)];
    let operators = [Operator::json("https://ops.example/alerts", None)];
    let look = || check(&*store, &rules, &operators);
    assert!(look().await.unwrap().is_empty());
    clock.advance(Millis::from_secs(300));
    assert!(look().await.unwrap().is_empty());
    clock.advance(Millis::new(1));
    assert_eq!(look().await.unwrap().len(), 1);
    assert!(look().await.unwrap().is_empty(), "once per incident");
    let replay = Replay::new(vec![id], ReplayOnly::DeadLetters, "ann");
    store.replay(&Scope::All, replay).await.unwrap();
    assert_eq!(look().await.unwrap()[0].status, AlertStatus::Resolved);
    let notices = store.queues().await.unwrap().into_iter().find(|q| q.name.as_str() == NOTICE_QUEUE).unwrap();
    let depth = store.depths(&Scope::All).await.unwrap().into_iter().find(|d| d.queue == notices.id).unwrap();
    assert_eq!(depth.due, 2, "one notice for firing, one for the end");
}

/// A gate of the queue `calls`, whose breaker has opened or which is held.
fn gate(key: &str, is_open: bool, held_since: Option<Timestamp>) -> crate::store::GateStatus {
    use windlass_core::gate::{BreakerRule, Ended, Gate, GateRule, Hold, HoldOrigin, Pass, Start};
    let rule = GateRule { breaker: Some(BreakerRule { minimum: 1, ..BreakerRule::default() }), ..GateRule::default() };
    let mut gate = Gate::default();
    if is_open {
        gate.start(&rule, Start::FIRST, Pass::default(), START);
        gate.end(&rule, Pass::default(), Ended::FailedAtDestination, START);
    }
    if let Some(since) = held_since {
        let until = START + Millis::from_secs(86_400);
        gate.hold(Hold { since, until, origin: HoldOrigin::Operator("ann".into()), reason: "repairs".into() });
    }
    let queue = QueueName::new("calls").unwrap();
    let name = crate::store::GateName { tenant: Some(Default::default()), queue, key: Some(key.into()) };
    crate::store::GateStatus { name, rule, gate, parked: 0 }
}

#[test]
fn open_breakers_and_long_holds_are_reported() {
    let hour = Millis::from_secs(3600);
    let picture = Picture {
        gates: vec![gate("a", true, None), gate("b", true, None), gate("c", false, Some(START))],
        ..Picture::default()
    };
    let breakers = rule(Measure::OpenBreakers).read(&picture, START);
    assert_eq!(breakers.holds.as_deref(), Some("the circuit breaker of key a of queue calls and 1 more are open"));
    assert_eq!(breakers.worst.unwrap().1.as_str(), "calls");
    let few = Rule { threshold: 3, ..rule(Measure::OpenBreakers) };
    assert_eq!(few.read(&picture, START).holds, None);
    let elsewhere = Rule { queue: Some("mail".into()), ..rule(Measure::OpenBreakers) };
    assert_eq!(elsewhere.read(&picture, START).holds, None);
    assert_eq!(rule(Measure::Holds).read(&picture, START + hour).holds, None, "not longer than an hour");
    let long = rule(Measure::Holds).read(&picture, START + hour + MINUTE).holds.unwrap();
    assert!(long.starts_with("key c of queue calls has been held for 1h1m by operator ann (repairs), until"), "{long}");
    assert_eq!(rule(Measure::Holds).read(&Picture::default(), START + hour + hour).holds, None);
}
