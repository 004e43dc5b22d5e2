//! Deltas are folded soon, by any node, and no count is lost; depths are computed from them.

use crate::world::{World, claim, job, options, url};
use std::sync::Arc;
use std::time::Duration;
use windlass::Clock;
use windlass::core::job::QueueName;
use windlass::core::{Millis, Outcome, Roll};
use windlass::low_level::job::{ClaimedJob, NewJob, RunAt};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, Commit, Depth, Options, Scope, Share};
use windlass::low_level::tally::Tally;

/// Longer than folding takes, shorter than a user would wait.
const SOON: Duration = Duration::from_secs(30);
const DELTAS: &str = "SELECT count(*) FROM {s}.tally_deltas";
/// More jobs than depths count before they try the other part.
const MANY: usize = 10_050;

async fn sum(store: &PostgresStore) -> Tally {
    let mut sum = Tally::default();
    for (_, _, tally) in store.tallies(&Scope::All, None).await.unwrap() {
        sum += tally;
    }
    sum
}

/// Due, later and running, of all queues.
async fn depth(store: &PostgresStore) -> (u64, u64, u64) {
    let depths = store.depths(&Scope::All).await.unwrap();
    let total = |of: fn(&Depth) -> u64| depths.iter().map(of).sum::<u64>();
    (total(|d| d.due), total(|d| d.later), total(|d| d.running))
}

/// The same, counted.
async fn counted(w: &World) -> (u64, u64, u64) {
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let count = async |which: &str| w.count(&format!("SELECT count(*) FROM {{s}}.live WHERE {which}")).await as u64;
    let due = count(&format!("state <> 'running' AND due_at <= {now}")).await;
    let later = count(&format!("state <> 'running' AND due_at > {now}")).await;
    (due, later, count("state = 'running'").await)
}

fn succeeded(job: &ClaimedJob) -> Commit {
    let now = job.claimed_at.unwrap();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    commit_of(job, &Outcome::Succeeded, trace, Roll(0))
}

#[tokio::test]
async fn many_deltas_are_folded_at_once_by_any_node_and_no_count_is_lost() {
    let w = World::new().await;
    let other = PostgresStore::open(&url(), options(&w.schema)).await.unwrap();
    let nodes = [w.store.clone(), other];
    let enqueue = async |node: &Arc<PostgresStore>| {
        for _ in 0..400 {
            node.enqueue(vec![job()], Atomicity::Each).await.unwrap();
        }
    };
    let prune = async {
        for _ in 0..20 {
            nodes[1].prune().await.unwrap();
        }
    };
    tokio::join!(enqueue(&nodes[0]), enqueue(&nodes[0]), enqueue(&nodes[1]), enqueue(&nodes[1]), prune);
    assert_eq!(sum(&w.store).await.enqueued, 1600);
    assert_eq!(depth(&w.store).await, (1600, 0, 0));
    let folded = async {
        while w.count(DELTAS).await >= 250 {
            // Reading is enough: the node notices that there are many.
            assert_eq!(sum(&w.store).await.enqueued, 1600);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, folded).await.expect("deltas are folded without upkeep");
    assert_eq!(sum(&w.store).await.enqueued, 1600);
    assert_eq!(depth(&w.store).await, (1600, 0, 0));
    w.end().await;
}

#[tokio::test]
async fn depths_match_a_count_however_many_jobs_are_due_or_later() {
    let w = World::new().await;
    let later = |count| vec![NewJob { run_at: RunAt::After(Millis::from_secs(86_400)), ..job() }; count];
    w.store.enqueue(vec![job(); 30], Atomicity::Each).await.unwrap();
    w.store.enqueue(later(20), Atomicity::Each).await.unwrap();
    let running = w.claim(7).await;
    assert_eq!(depth(&w.store).await, (23, 20, 7));
    w.store.enqueue(later(MANY), Atomicity::Each).await.unwrap();
    assert_eq!(depth(&w.store).await, (23, 20 + MANY as u64, 7), "the due ones are fewer");
    w.store.enqueue(vec![job(); MANY], Atomicity::Each).await.unwrap();
    assert_eq!(depth(&w.store).await, (23 + MANY as u64, 20 + MANY as u64, 7), "both are many");
    w.store.commit(running.iter().map(succeeded).collect(), vec![]).await.unwrap();
    w.store.prune().await.unwrap();
    let email = QueueName::new("email").unwrap();
    w.store.enqueue(vec![NewJob { queue: email, ..job() }; 3], Atomicity::Each).await.unwrap();
    assert_eq!(depth(&w.store).await, counted(&w).await);
    assert_eq!(depth(&w.store).await, (26 + MANY as u64, 20 + MANY as u64, 0));
    w.end().await;
}

#[tokio::test]
async fn an_older_program_folds_as_before_and_depths_stay_correct() {
    let w = World::new().await;
    w.store.enqueue(vec![job(); 5], Atomicity::Each).await.unwrap();
    let running = w.claim(2).await;
    w.store.commit(vec![succeeded(&running[0])], vec![]).await.unwrap();
    let before = (sum(&w.store).await, depth(&w.store).await);
    let fold = "WITH old AS (DELETE FROM {s}.tally_deltas RETURNING at, queue_id, kind, enqueued, succeeded, attempts, \
        first_attempts, run_ms, pickup_ms)
        INSERT INTO {s}.tallies (span_ms, start, queue_id, kind, enqueued, succeeded, attempts, first_attempts, run_ms, pickup_ms)
        SELECT 60000, at - at % 60000, queue_id, kind, sum(enqueued), sum(succeeded), sum(attempts), sum(first_attempts), \
        sum(run_ms), sum(pickup_ms) FROM old GROUP BY 2, 3, 4";
    w.client.batch_execute(&fold.replace("{s}", &w.schema)).await.unwrap();
    assert_eq!(w.count(DELTAS).await, 0);
    assert_eq!((sum(&w.store).await, depth(&w.store).await), before);
    assert_eq!(before.1, (3, 0, 1));
    w.end().await;
}

#[tokio::test]
async fn jobs_deleted_by_hand_are_noticed_within_the_hour() {
    let w = World::new().await;
    let clock = Clock::manual(w.store.clock().now());
    let options = Options { clock: clock.clone(), ..options(&w.schema) };
    let store = PostgresStore::open(&url(), options).await.unwrap();
    store.enqueue(vec![job(); 5], Atomicity::Each).await.unwrap();
    store.prune().await.unwrap();
    w.client.batch_execute(&format!("DELETE FROM {}.jobs WHERE id <= 2", w.schema)).await.unwrap();
    store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    assert_eq!(depth(&store).await, (6, 0, 0));
    clock.advance(Millis::from_secs(3601));
    store.prune().await.unwrap();
    assert_eq!(depth(&store).await, (4, 0, 0));
    w.end().await;
}

#[tokio::test]
async fn depths_stay_correct_while_jobs_are_enqueued_and_finish() {
    let w = World::new().await;
    let queue = w.queue().await;
    let produce = async {
        for _ in 0..150 {
            w.store.enqueue(vec![job(); 3], Atomicity::Each).await.unwrap();
        }
    };
    let consume = async {
        for _ in 0..120 {
            let share = Share { queue, slots: 2, ahead: 0 };
            let jobs = w.store.claim(claim(share)).await.unwrap().jobs;
            w.store.commit(jobs.iter().map(succeeded).collect(), vec![]).await.unwrap();
        }
    };
    let look = async {
        for _ in 0..60 {
            // At any moment: what was stored less what has finished, and never more running than were claimed.
            let (due, later, running) = depth(&w.store).await;
            assert!(due <= 450 && later == 0 && running <= 2, "{due} due, {later} later, {running} running");
            w.store.prune().await.unwrap();
        }
    };
    tokio::join!(produce, consume, look);
    assert_eq!(depth(&w.store).await, counted(&w).await);
    w.end().await;
}
