use super::world;
use crate::world::*;
use windlass::core::{Millis, Outcome, State};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{Discard, JobFilter, Scope, SettingKey, Steps};

const DAY: Millis = Millis::from_secs(86_400);

async fn set_retention(w: &World, queue: &str, retention: &str) {
    let key = SettingKey::Queue { tenant: None, name: queue.into() };
    w.store.put_setting(&key, Some(&format!(r#"{{"retention":{retention}}}"#))).await.unwrap();
}

async fn prune_all(w: &World) -> u64 {
    let mut gone = 0;
    loop {
        let now = w.store.prune().await.unwrap();
        gone += now;
        if now == 0 {
            return gone;
        }
    }
}

#[tokio::test]
async fn finished_jobs_are_kept_as_long_as_their_class_says() {
    let w = world().await;
    let stored = w.put_all((0..3).map(|_| job()).collect()).await;
    let jobs = w.claim(&["default"], 3).await.jobs;
    w.succeed(&jobs[0]).await;
    w.commit(&jobs[1], Outcome::Cancelled).await;
    w.commit(&jobs[2], Outcome::Failed(windlass::core::Failure::permanent("no"))).await;
    assert_eq!(prune_all(&w).await, 0);
    for _ in 0..8 {
        w.advance(DAY);
    }
    assert_eq!(prune_all(&w).await, 2);
    assert_eq!(w.list(JobFilter::default()).await, [stored[2]]);
    assert!(w.ledger(stored[0]).await.is_empty());
    for _ in 0..83 {
        w.advance(DAY);
    }
    assert_eq!(prune_all(&w).await, 1);
    assert!(w.list(JobFilter::default()).await.is_empty());
}

#[tokio::test]
async fn a_queues_own_retention_applies() {
    let w = world().await;
    set_retention(&w, "short", r#"{"succeeded":"1h"}"#).await;
    set_retention(&w, "forever", r#"{"succeeded":"forever"}"#).await;
    set_retention(&w, "none", r#"{"succeeded":"0","failed":"0"}"#).await;
    for queue in ["short", "forever", "none", "default"] {
        w.put(job_in(queue)).await;
        let running = w.claim(&[queue], 1).await.jobs.remove(0);
        w.succeed(&running).await;
    }
    let queues = async |w: &World| {
        let jobs = w.store.jobs(&Scope::All, &JobFilter::default(), all()).await.unwrap();
        jobs.iter().map(|job| job.queue.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(queues(&w).await, ["short", "forever", "default"], "0 drops on finish");
    w.advance(DAY);
    prune_all(&w).await;
    assert_eq!(queues(&w).await, ["forever", "default"]);
    for _ in 0..400 {
        w.advance(DAY);
    }
    prune_all(&w).await;
    assert_eq!(queues(&w).await, ["forever"]);
}

#[tokio::test]
async fn ids_are_not_reused() {
    let w = world().await;
    set_retention(&w, "default", r#"{"succeeded":"0"}"#).await;
    let first = w.put(job()).await;
    w.succeed(&w.claim_one().await).await;
    assert!(w.find(first).await.is_none());
    assert!(w.put(job()).await > first);
    let other = w.reopened().await;
    let stored = other.enqueue(vec![job()], windlass::low_level::stores::Atomicity::Each).await.unwrap();
    assert!(stored[0].id().unwrap() > first);
}

#[tokio::test]
async fn settings_are_kept_replaced_and_removed() {
    let w = world().await;
    let own = SettingKey::Queue { tenant: Some(tenant("acme")), name: "email".into() };
    let shared = SettingKey::Queue { tenant: None, name: "email".into() };
    w.store.put_setting(&own, Some("1")).await.unwrap();
    w.store.put_setting(&shared, Some("2")).await.unwrap();
    w.store.put_setting(&own, Some("3")).await.unwrap();
    let kind = SettingKey::Kind { name: "email".into() };
    let another = SettingKey::Queue { tenant: Some(tenant("acme")), name: "sms".into() };
    w.store.put_setting(&kind, Some("4")).await.unwrap();
    w.store.put_setting(&another, Some("5")).await.unwrap();
    let settings = async || {
        let mut settings = w.store.settings().await.unwrap();
        settings.sort();
        settings
    };
    let expected = [(own.clone(), "3"), (shared, "2"), (kind.clone(), "4"), (another, "5")];
    let mut expected = expected.map(|(key, value)| (key, value.to_owned())).to_vec();
    expected.sort();
    assert_eq!(settings().await, expected);
    for key in [own, kind] {
        w.store.put_setting(&key, None).await.unwrap();
        expected.retain(|(other, _)| *other != key);
        assert_eq!(settings().await, expected, "without {key:?}");
    }
}

#[tokio::test]
async fn tallies_equal_a_full_scan() {
    let w = world().await;
    w.put_all((0..6).map(|_| job()).collect()).await;
    w.put(NewJob { tenant: tenant("acme"), ..job() }).await;
    let jobs = w.claim(&["default"], 6).await.jobs;
    w.advance(SECOND);
    w.succeed(&jobs[0]).await;
    w.fail(&jobs[1]).await;
    w.commit(&jobs[2], Outcome::Snoozed(SECOND)).await;
    w.commit(&jobs[3], Outcome::Cancelled).await;
    w.fail(&jobs[4]).await;
    w.advance(Millis::from_secs(10));
    let retries = w.claim(&["default"], 3).await.jobs;
    assert_eq!(retries.len(), 3);
    w.succeed(&retries[1]).await;
    w.advance(LEASE);
    w.reap().await;

    let tallies = w.store.tallies(&Scope::Tenant(tenant("default")), None).await.unwrap();
    assert_eq!(tallies.len(), 1);
    let (queue, kind, tally) = &tallies[0];
    assert_eq!((queue.name.as_str(), kind.as_str()), ("default", "email"));
    let jobs = w.store.jobs(&Scope::Tenant(tenant("default")), &JobFilter::default(), all()).await.unwrap();
    let mut ledger = Vec::new();
    for job in &jobs {
        ledger.extend(w.ledger(job.id).await);
    }
    let in_state = |state| jobs.iter().filter(|job| job.state == state).count() as i64;
    assert_eq!(tally.enqueued, 6);
    assert_eq!(tally.attempts, ledger.len() as i64);
    assert_eq!(tally.succeeded, in_state(State::Succeeded));
    assert_eq!(tally.cancelled, in_state(State::Cancelled));
    assert_eq!(tally.live(), jobs.iter().filter(|job| job.state.is_live()).count() as i64);
    assert_eq!(tally.lost, ledger.iter().filter(|a| a.error_class.as_deref() == Some("WorkerLost")).count() as i64);
    assert_eq!(tally.backoff_ms, ledger.iter().filter(|a| a.error_class.is_some()).filter_map(|a| a.delay).map(|d| d.get() as i64).sum::<i64>());
    assert_eq!(tally.run_ms, ledger.iter().map(|a| a.duration().get() as i64).sum::<i64>());
    assert_eq!((tally.successful_retries, tally.postponed), (1, 1));

    let recent = w.store.tallies(&Scope::All, Some(w.now())).await.unwrap();
    assert_eq!(recent.iter().map(|(_, _, t)| t.attempts).sum::<i64>(), tally.lost, "only what was reaped just now");
}

#[tokio::test]
async fn folding_old_tallies_changes_no_sum() {
    let w = world().await;
    for _ in 0..5 {
        w.put(job()).await;
        w.succeed(&w.claim_one().await).await;
        w.advance(Millis::from_secs(1800));
    }
    let before = w.store.tallies(&Scope::All, None).await.unwrap();
    for _ in 0..4 {
        w.advance(DAY);
        prune_all(&w).await;
    }
    assert_eq!(w.store.tallies(&Scope::All, None).await.unwrap(), before);
    assert_eq!(before[0].2.succeeded, 5);
}

#[tokio::test]
async fn windows_are_exact_at_first_then_to_the_minute_then_to_the_hour() {
    let w = world().await;
    // Noon, and a minute and a half later.
    w.put(job()).await;
    w.advance(Millis::from_secs(90));
    w.put(job()).await;
    let counted = async |since| {
        let tallies = w.store.tallies(&Scope::All, Some(START + Millis::from_secs(since))).await.unwrap();
        tallies.iter().map(|(_, _, tally)| tally.enqueued).sum::<i64>()
    };
    let after = async |span| {
        w.advance((START + span).since(w.now()));
        prune_all(&w).await;
        [counted(0).await, counted(60).await, counted(61).await, counted(90).await, counted(91).await]
    };
    assert_eq!(after(Millis::from_secs(16 * 60 + 59)).await, [2, 1, 1, 1, 0]);
    assert_eq!(after(Millis::from_secs(17 * 60)).await, [2, 1, 0, 0, 0], "the minute that began at 60 s");
    let two_days = Millis::from_secs(48 * 3600);
    assert_eq!(after(two_days + Millis::from_secs(3599)).await, [2, 1, 0, 0, 0]);
    assert_eq!(after(two_days + Millis::from_secs(3600)).await, [2, 0, 0, 0, 0], "the hour that began at noon");
}

#[tokio::test]
async fn a_window_begins_with_the_second_its_moment_lies_in() {
    let w = world().await;
    w.advance(Millis::new(400));
    w.put(job()).await;
    w.advance(Millis::new(500));
    w.put(job()).await;
    w.advance(Millis::new(200));
    w.put(job()).await;
    let counted = async |millis| {
        let tallies = w.store.tallies(&Scope::All, Some(START + Millis::new(millis))).await.unwrap();
        tallies.iter().map(|(_, _, tally)| tally.enqueued).sum::<i64>()
    };
    let all = [counted(0).await, counted(999).await, counted(1000).await, counted(1999).await, counted(2000).await];
    assert_eq!(all, [3, 3, 1, 1, 0]);
}

#[tokio::test]
async fn windows_read_together_equal_windows_read_one_by_one() {
    let w = world().await;
    for span in [4000, 3000, 200, 40, 7] {
        w.put(job()).await;
        w.put(job_in("other")).await;
        w.succeed(&w.claim_one().await).await;
        w.advance(Millis::from_secs(span));
        prune_all(&w).await;
    }
    // In no order, and one of them twice.
    let since = [300, 86_400, 5, 3600, 300, 0].map(|ago| w.now() - Millis::from_secs(ago));
    let windows = w.store.windows(&Scope::All, &since).await.unwrap();
    assert_eq!(windows.len(), since.len());
    for (window, since) in windows.iter().zip(since) {
        assert_eq!(*window, w.store.tallies(&Scope::All, Some(since)).await.unwrap());
    }
    let enqueued = |window: &[(_, _, windlass::low_level::tally::Tally)]| window.iter().map(|(.., tally)| tally.enqueued).sum::<i64>();
    assert_eq!(windows.iter().map(|window| enqueued(window)).collect::<Vec<_>>(), [6, 10, 0, 8, 6, 0]);
    let acme = w.store.windows(&Scope::Tenant(tenant("acme")), &since).await.unwrap();
    assert!(acme.iter().all(Vec::is_empty) && acme.len() == since.len());
    assert!(w.store.windows(&Scope::All, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_series_has_what_was_counted_in_each_step() {
    let w = world().await;
    w.put(NewJob { tenant: tenant("zeta"), ..job() }).await;
    // Three minutes apart, until the oldest have been folded into minutes.
    for n in 0..10_u64 {
        w.put(job()).await;
        if n % 2 == 0 {
            w.put(job_in("other")).await;
        }
        w.advance(Millis::from_secs(180));
        prune_all(&w).await;
    }
    let steps = Steps { from: START + Millis::from_secs(360), length: Millis::from_secs(360), count: 4 };
    let mut series = w.store.series(&Scope::All, steps).await.unwrap();
    series.sort_by(|a, b| (a.0, a.1.name.as_str()).cmp(&(b.0, b.1.name.as_str())));
    let found: Vec<_> = series.iter().map(|(step, queue, tally)| (*step, queue.name.as_str(), tally.enqueued)).collect();
    let step = |n| [(n, "default", 2), (n, "other", 1)];
    assert_eq!(found, [step(0), step(1), step(2), step(3)].concat());
    assert!(w.store.series(&Scope::Tenant(tenant("acme")), steps).await.unwrap().is_empty());
    let own = w.store.tallies(&Scope::Tenant(tenant("zeta")), None).await.unwrap();
    assert_eq!(own.iter().map(|(_, _, tally)| tally.enqueued).collect::<Vec<_>>(), [1]);
    let steps = Steps { from: START, length: Millis::from_secs(60), count: 1 };
    let first = w.store.series(&Scope::Tenant(tenant("default")), steps).await.unwrap();
    assert_eq!(first.iter().map(|(step, _, tally)| (*step, tally.enqueued)).collect::<Vec<_>>(), [(0, 1), (0, 1)]);
    // Steps of the last minutes, which are not folded yet: one job before them, one in each, one after them.
    let from = w.now() + SECOND;
    for _ in 0..4 {
        w.put(job_in("recent")).await;
        w.advance(SECOND);
    }
    let steps = Steps { from, length: SECOND, count: 2 };
    let recent = w.store.series(&Scope::All, steps).await.unwrap();
    let mut found: Vec<_> = recent.iter().map(|(step, queue, tally)| (*step, queue.name.as_str(), tally.enqueued)).collect();
    found.sort_unstable();
    assert_eq!(found, [(0, "recent", 1), (1, "recent", 1)]);
}

#[tokio::test]
async fn counts_of_a_busy_second_are_complete() {
    let w = world().await;
    // Enough commits for stores to fold them as they come.
    for _ in 0..1200 {
        w.put(job()).await;
        w.advance(Millis::new(3));
    }
    let counted = async |since: Option<Millis>| {
        let tallies = w.store.tallies(&Scope::All, since.map(|ago| w.now() - ago)).await.unwrap();
        tallies.iter().map(|(_, _, tally)| tally.enqueued).sum::<i64>()
    };
    // 3.6 s in all: of the last second, the 600 ms that the second before it begins with count too.
    assert_eq!([counted(None).await, counted(Some(Millis::from_secs(60))).await, counted(Some(SECOND)).await], [1200, 1200, 533]);
    let depths = w.store.depths(&Scope::All).await.unwrap();
    assert_eq!((depths[0].due, depths[0].later, depths[0].running), (1200, 0, 0));
}

#[tokio::test]
async fn workers_not_seen_for_a_long_time_are_not_listed() {
    let w = world().await;
    let report = |name: &str| windlass::low_level::stores::WorkerReport {
        worker: windlass::low_level::stores::WorkerId::new(name),
        host: "host".into(),
        version: "1".into(),
        queues: vec![],
        kinds: Some(vec!["email".into()]),
        running: 0,
        started_at: START,
        seen_at: w.now(),
    };
    let listed = async || w.store.workers(START).await.unwrap().into_iter().map(|w| w.worker.to_string()).collect::<Vec<_>>();
    w.store.report_worker(&report("old")).await.unwrap();
    w.advance(Millis::new(1));
    w.store.report_worker(&report("new")).await.unwrap();
    w.advance(Millis::new(7 * 86_400_000));
    prune_all(&w).await;
    assert_eq!(listed().await, ["new"]);
    w.advance(Millis::new(1));
    prune_all(&w).await;
    assert!(listed().await.is_empty());
}

#[tokio::test]
async fn a_job_is_kept_to_the_millisecond() {
    let w = world().await;
    set_retention(&w, "default", r#"{"succeeded":"1h"}"#).await;
    let id = w.put(job()).await;
    w.succeed(&w.claim_one().await).await;
    w.advance(Millis::new(3_599_999));
    assert_eq!(prune_all(&w).await, 0);
    assert!(w.find(id).await.is_some());
    w.advance(Millis::new(1));
    assert_eq!(prune_all(&w).await, 1);
    assert!(w.find(id).await.is_none());
}

#[tokio::test]
async fn migrating_again_changes_nothing_and_the_store_is_healthy() {
    let w = world().await;
    let id = w.put(job()).await;
    w.store.migrate().await.unwrap();
    w.store.migrate().await.unwrap();
    assert_eq!(w.get(id).await.id, id);
    assert!(!w.store.health().await.unwrap().engine.is_empty());
}

#[tokio::test]
async fn each_state_is_kept_as_long_as_its_queue_says() {
    let w = world().await;
    set_retention(&w, "up", r#"{"succeeded":"1h","cancelled":"2h","failed":"3h"}"#).await;
    set_retention(&w, "down", r#"{"succeeded":"3h","cancelled":"2h","failed":"1h"}"#).await;
    for queue in ["up", "down", "other"] {
        w.put_all((0..3).map(|_| job_in(queue)).collect()).await;
        let jobs = w.claim(&[queue], 3).await.jobs;
        w.succeed(&jobs[0]).await;
        w.commit(&jobs[1], Outcome::Cancelled).await;
        w.commit(&jobs[2], Outcome::Failed(windlass::core::Failure::permanent("no"))).await;
    }
    let kept = async || {
        let jobs = w.store.jobs(&Scope::All, &JobFilter::default(), all()).await.unwrap();
        let of = |queue: &str| {
            let own = jobs.iter().filter(|job| job.queue.as_str() == queue);
            own.map(|job| job.state).collect::<Vec<State>>()
        };
        [of("up"), of("down"), of("other")]
    };
    let (succeeded, cancelled, failed) = (State::Succeeded, State::Cancelled, State::Failed);
    let every = vec![succeeded, cancelled, failed];
    for (up, down) in
        [(vec![cancelled, failed], vec![succeeded, cancelled]), (vec![failed], vec![succeeded]), (vec![], vec![])]
    {
        w.advance(Millis::from_secs(3600));
        prune_all(&w).await;
        assert_eq!(kept().await, [up, down, every.clone()]);
    }
}

#[tokio::test]
async fn pruning_counts_only_what_was_a_dead_letter() {
    let w = world().await;
    set_retention(&w, "default", r#"{"failed":"1h"}"#).await;
    w.put_all((0..2).map(|_| job()).collect()).await;
    let discarded = w.fail_for_good("broken").await;
    let ids = vec![discarded, w.fail_for_good("broken").await];
    let discard = Discard { ids: vec![discarded], reason: "known".into(), by: "ann".into(), what: String::new() };
    w.store.discard(&Scope::All, discard).await.unwrap();
    let dead = async || w.store.depths(&Scope::All).await.unwrap()[0].dead;
    assert_eq!(dead().await, 1);
    w.advance(Millis::from_secs(3600));
    w.put(job()).await;
    let last = w.fail_for_good("broken").await;
    prune_all(&w).await;
    assert_eq!(w.list(JobFilter::default()).await, [last], "{ids:?} are gone");
    assert_eq!(dead().await, 1);
}
