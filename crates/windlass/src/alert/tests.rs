use super::rules::Picture;
use super::*;
use crate::clock::Clock;
use crate::store::JobLife;
use crate::store::Reads;
use crate::store::Registry;
use crate::store::memory::MemoryStore;
use crate::store::{Atomicity, Options, Scope};
use crate::tally::Tally;

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
    assert!(is_news(Some(&pending), &firing) && is_news(Some(&firing), &resolved));
    assert_eq!(step(Some(&resolved), &rule, &reading(false), later + MINUTE), None);
    assert_eq!(step(Some(&resolved), &rule, &reading(true), later + MINUTE).unwrap().incident, 2);
}

#[test]
fn what_passes_in_time_is_nobodys_business() {
    let rule = rule(Measure::DeadLetters);
    let pending = step(None, &rule, &reading(true), START).unwrap();
    let over = step(Some(&pending), &rule, &reading(false), START + MINUTE).unwrap();
    assert!(!is_news(Some(&pending), &over));
    assert_eq!((over.status, over.fired_at), (AlertStatus::Resolved, None));
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
    let operators = [Operator { url: "https://ops.example/alerts".into(), secret: None }];
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
