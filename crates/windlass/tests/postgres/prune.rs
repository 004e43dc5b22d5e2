//! Retention: what is past it is removed, and nobody waits meanwhile.

use crate::world::{World, job, options, plain, url};
use std::time::Duration;
use windlass::core::{Millis, Outcome, Roll, State};
use windlass::low_level::clock::{Clock, Stopwatch};
use windlass::low_level::job::{Idempotency, KeyWindow, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, JobFilter, Options, Order, Page, Scope, SettingKey};
use windlass::low_level::stores::{Replay, ReplayOnly, Spacing};

const DAY: Millis = Millis::from_secs(86_400);
/// Jobs finished so long ago that the default retention of a week is over.
const OLD: u64 = 20;
/// A wait for the reader would never end.
const SOON: Duration = Duration::from_secs(60);
/// What is stored of jobs.
const ROWS: &str = "SELECT (SELECT count(*) FROM {s}.jobs) + (SELECT count(*) FROM {s}.attempts)";

/// Finishes three jobs on each of three days, 20 days ago and after.
async fn finish_long_ago(w: &World) {
    let clock = Clock::manual(w.store.clock().now() - Millis::new(OLD * DAY.get()));
    let past = PostgresStore::open(&url(), Options { clock: clock.clone(), ..options(&w.schema) }).await.unwrap();
    for _ in 0..3 {
        past.enqueue(vec![job(); 3], Atomicity::Each).await.unwrap();
        let share = windlass::low_level::stores::Share { queue: w.queue().await, slots: 3, ahead: 0 };
        let jobs = past.claim(crate::world::claim(share)).await.unwrap().jobs;
        let now = clock.now();
        let trace = || Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
        let commits = jobs.iter().map(|job| commit_of(job, &Outcome::Succeeded, trace(), Roll(0))).collect();
        past.commit(commits, vec![]).await.unwrap();
        clock.advance(DAY);
    }
}

async fn archived(w: &World) -> usize {
    let filter = JobFilter { states: vec![State::Succeeded], ..JobFilter::default() };
    let page = Page { after: None, limit: 100, order: Order::OldestFirst };
    w.store.jobs(&Scope::All, &filter, page).await.unwrap().len()
}

#[tokio::test]
async fn jobs_past_their_retention_are_removed_with_their_attempts() {
    let w = World::new().await;
    finish_long_ago(&w).await;
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    assert_eq!((archived(&w).await, w.count(ROWS).await), (9, 19));
    assert_eq!(w.store.prune().await.unwrap(), 9);
    assert_eq!((archived(&w).await, w.count(ROWS).await), (0, 1), "the live job stays");
    assert_eq!(w.store.prune().await.unwrap(), 0);
    w.end().await;
}

#[tokio::test]
async fn a_prune_waits_for_no_reader_and_blocks_nobody() {
    let w = World::new().await;
    finish_long_ago(&w).await;
    let reader = plain().await;
    let read = format!("BEGIN; SELECT count(*) FROM {}.archive", w.schema);
    reader.batch_execute(&read).await.unwrap();
    let began = Stopwatch::start();
    let others = async {
        for _ in 0..5 {
            archived(&w).await;
            w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
            let now = w.store.clock().now();
            let running = w.claim(1).await;
            let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), ..Trace::default() };
            let commit = commit_of(&running[0], &Outcome::Cancelled, trace, Roll(0));
            w.store.commit(vec![commit], vec![]).await.unwrap();
        }
    };
    let (pruned, ()) = tokio::join!(w.store.prune(), others);
    assert_eq!(pruned.unwrap(), 9);
    assert!(began.elapsed() < SOON, "nobody waits for the reader: {:?}", began.elapsed());
    reader.batch_execute("COMMIT").await.unwrap();
    w.end().await;
}

#[tokio::test]
async fn a_job_that_is_being_replayed_is_not_pruned() {
    let w = World::new().await;
    finish_long_ago(&w).await;
    let held = format!("BEGIN; SELECT FROM {}.attempts WHERE job_id = 1 FOR UPDATE", w.schema);
    w.client.batch_execute(&held).await.unwrap();
    assert_eq!(w.store.prune().await.unwrap(), 8);
    w.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(w.store.prune().await.unwrap(), 1);
    w.end().await;
}

/// Their rows would make every claim of the queue ask the gates.
#[tokio::test]
async fn replayed_jobs_that_are_gone_leave_nothing_behind() {
    let w = World::new().await;
    let none = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&none, Some(r#"{"retention":{"cancelled":"0"}}"#)).await.unwrap();
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    let jobs = w.claim(1).await;
    let now = w.store.clock().now();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    let failed = Outcome::Failed(windlass::core::Failure::permanent("broken"));
    w.store.commit(vec![commit_of(&jobs[0], &failed, trace, Roll(0))], vec![]).await.unwrap();
    let spacing = Spacing::every(Millis::from_secs(60));
    let replay =
        Replay { spacing, what: "all".into(), ..Replay::new(vec![jobs[0].id], ReplayOnly::DeadLetters, "ann") };
    w.store.replay(&Scope::All, replay).await.unwrap();
    const REPLAYED: &str = "SELECT count(*) FROM {s}.replayed";
    assert_eq!(w.count(REPLAYED).await, 1);
    w.store.cancel(&Scope::All, vec![jobs[0].id]).await.unwrap();
    assert_eq!(w.count(ROWS).await, 0, "it is not kept");
    w.store.prune().await.unwrap();
    assert_eq!(w.count(REPLAYED).await, 0);
    w.end().await;
}

#[tokio::test]
async fn keys_of_jobs_that_are_gone_are_removed() {
    let w = World::new().await;
    let none = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&none, Some(r#"{"retention":{"cancelled":"0"}}"#)).await.unwrap();
    let keyed = |key: &str| {
        let idempotency = Idempotency { key: key.into(), window: KeyWindow::Live };
        NewJob { idempotency: Some(idempotency), ..job() }
    };
    let stored = w.store.enqueue(vec![keyed("gone"), keyed("live")], Atomicity::Each).await.unwrap();
    w.store.cancel(&Scope::All, vec![stored[0].id().unwrap()]).await.unwrap();
    assert_eq!(w.count(ROWS).await, 1, "it is not kept");
    w.store.prune().await.unwrap();
    assert_eq!(w.count("SELECT count(*) FROM {s}.keys").await, 1);
    assert_eq!(w.store.enqueue(vec![keyed("live")], Atomicity::Each).await.unwrap()[0].id(), stored[1].id());
    w.end().await;
}
