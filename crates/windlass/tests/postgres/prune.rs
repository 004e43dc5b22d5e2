//! Retention: what is past it is removed by whole partitions, and readers do not wait long meanwhile.

use crate::world::{World, job, options, plain, url};
use std::time::Duration;
use windlass::core::{Millis, Outcome, Roll, State};
use windlass::low_level::clock::{Clock, Stopwatch};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, JobFilter, Options, Order, Page, Scope};

const DAY: Millis = Millis::from_secs(86_400);
/// Jobs finished so long ago that the default retention of a week is over.
const OLD: u64 = 20;
/// Longer than a prune waits for a lock; a wait for the reader would never end.
const SOON: Duration = Duration::from_secs(60);
/// Parts of the archive, and of its attempts, that begin more than ten days ago.
const OLD_PARTS: &str = "SELECT count(*) FROM pg_tables WHERE schemaname = '{s}' \
     AND tablename ~ '^archive_(attempts_)?done_p' \
     AND substring(tablename from '[0-9]+$')::bigint < (extract(epoch FROM now()) - 864000) * 1000";

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
async fn jobs_past_their_retention_are_dropped_with_their_partitions() {
    let w = World::new().await;
    finish_long_ago(&w).await;
    assert!(w.count(OLD_PARTS).await >= 6, "a part for each day, of jobs and of attempts");
    assert_eq!(archived(&w).await, 9);
    assert_eq!(w.store.prune().await.unwrap(), 9);
    assert_eq!(archived(&w).await, 0);
    assert_eq!(w.count(OLD_PARTS).await, 0);
    assert_eq!(w.store.prune().await.unwrap(), 0);
    w.end().await;
}

#[tokio::test]
async fn a_slow_reader_delays_a_drop_and_blocks_nobody() {
    let w = World::new().await;
    finish_long_ago(&w).await;
    let parts = w.count(OLD_PARTS).await;
    let reader = plain().await;
    let read = format!("BEGIN; SELECT count(*) FROM {}.archive", w.schema);
    reader.batch_execute(&read).await.unwrap();
    // While the drop waits for its lock, others read and finish jobs.
    let began = Stopwatch::start();
    let others = async {
        for _ in 0..5 {
            archived(&w).await;
            w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
            let now = w.store.clock().now();
            let running = w.claim(1).await;
            let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
            let commit = commit_of(&running[0], &Outcome::Cancelled, trace, Roll(0));
            w.store.commit(vec![commit], vec![]).await.unwrap();
        }
    };
    let (pruned, ()) = tokio::join!(w.store.prune(), others);
    assert_eq!(pruned.unwrap(), 9, "the rows of small parts go at once");
    assert_eq!(w.count(OLD_PARTS).await, parts, "the drop is delayed, not waited for");
    assert!(began.elapsed() < SOON, "nobody waits for the reader: {:?}", began.elapsed());
    reader.batch_execute("COMMIT").await.unwrap();
    w.store.prune().await.unwrap();
    assert_eq!(w.count(OLD_PARTS).await, 0, "dropped when nobody reads them");
    w.end().await;
}
