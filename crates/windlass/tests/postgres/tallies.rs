//! Deltas are folded soon, by any node, and no count is lost; depths are computed from them.

use crate::world::{World, claim, job, options, url};
use std::sync::Arc;
use std::time::Duration;
use windlass::Clock;
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{Executor, Failure, Millis, Outcome, Roll};
use windlass::low_level::job::{ClaimedJob, NewJob, QueueId, RunAt};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, Commit, Depth, Discard, Discarded, Options, Scope, SettingKey, Share};
use windlass::low_level::stores::{Replay, ReplayOnly, Replayed};
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

/// Due jobs, jobs for later, running jobs and dead letters of each queue.
async fn depth_of_each(store: &PostgresStore) -> Vec<(QueueId, [u64; 4])> {
    let depths = store.depths(&Scope::All).await.unwrap();
    depths.iter().map(|d| (d.queue, [d.due, d.later, d.running, d.dead])).collect()
}

/// Due, later and running, of all queues, counted.
async fn counted(w: &World) -> (u64, u64, u64) {
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let count = async |which: &str| w.count(&format!("SELECT count(*) FROM {{s}}.live WHERE {which}")).await as u64;
    let due = count(&format!("state <> 'running' AND due_at <= {now}")).await;
    let later = count(&format!("state <> 'running' AND due_at > {now}")).await;
    (due, later, count("state = 'running'").await)
}

fn succeeded(job: &ClaimedJob) -> Commit {
    ended(job, &Outcome::Succeeded)
}

fn ended(job: &ClaimedJob, outcome: &Outcome) -> Commit {
    let now = job.claimed_at.unwrap();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    commit_of(job, outcome, trace, Roll(0))
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
    assert_eq!(depth(&w.store).await, counted(&w).await);
    assert_eq!(depth(&w.store).await, (23 + MANY as u64, 20 + MANY as u64, 0));
    w.end().await;
}

#[tokio::test]
async fn the_depth_of_a_full_queue_counts_no_job_of_another() {
    let w = World::new().await;
    let default = w.queue().await;
    let (tenant, email) = (Tenant::default(), QueueName::new("email").unwrap());
    let one = r#"{"limits":{"perKey":{"concurrency":1}}}"#;
    let limits = SettingKey::Queue { tenant: None, name: "email".into() };
    w.store.put_setting(&limits, Some(one)).await.unwrap();
    // Of the other queue one job runs, two are parked, one is due and two are for later.
    let of_email = || NewJob { queue: email.clone(), limit_key: Some("k".into()), ..job() };
    w.store.enqueue(vec![of_email(); 3], Atomicity::Each).await.unwrap();
    let queue = w.store.register_queue(&tenant, &email, Executor::Worker).await.unwrap().id;
    let claimed = w.store.claim(claim(Share { queue, slots: 5, ahead: 0 })).await.unwrap();
    assert_eq!((claimed.jobs.len(), claimed.parked.len()), (1, 2));
    let tomorrow = |job| NewJob { run_at: RunAt::After(Millis::from_secs(86_400)), ..job };
    let more = vec![of_email(), tomorrow(of_email()), tomorrow(of_email())];
    w.store.enqueue(more, Atomicity::Each).await.unwrap();
    let of_email = (queue, [3, 2, 1, 0]);
    w.store.enqueue(vec![tomorrow(job()); MANY], Atomicity::Each).await.unwrap();
    assert_eq!(depth_of_each(&w.store).await, [(default, [0, MANY as u64, 0, 0]), of_email]);
    w.store.enqueue(vec![job(); MANY], Atomicity::Each).await.unwrap();
    assert_eq!(depth_of_each(&w.store).await, [(default, [MANY as u64, MANY as u64, 0, 0]), of_email]);
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

/// A store whose clock stands still. It counts jobs again when it is pruned more than an hour after its first prune.
async fn stopped(w: &World) -> (Arc<PostgresStore>, Clock) {
    let clock = Clock::manual(w.store.clock().now());
    let options = Options { clock: clock.clone(), ..options(&w.schema) };
    (PostgresStore::open(&url(), options).await.unwrap(), clock)
}

#[tokio::test]
async fn a_recount_changes_nothing_that_is_right() {
    let w = World::new().await;
    let (store, clock) = stopped(&w).await;
    store.prune().await.unwrap();
    clock.advance(Millis::from_secs(3601));
    // All within one second, so that nothing of it is folded before the recount.
    let stored = store.enqueue(vec![job(); 9], Atomicity::Each).await.unwrap();
    let share = Share { queue: w.queue().await, slots: 6, ahead: 0 };
    let running = store.claim(claim(share)).await.unwrap().jobs;
    let broken = Outcome::Failed(Failure::permanent("broken"));
    let failed = running[1..4].iter().map(|job| ended(job, &broken));
    store.commit([succeeded(&running[0])].into_iter().chain(failed).collect(), vec![]).await.unwrap();
    let again = Replay::new(vec![running[1].id], ReplayOnly::DeadLetters, "ann");
    assert_eq!(store.replay(&Scope::All, again).await.unwrap(), [Replayed::Queued]);
    let discard = Discard { ids: vec![running[2].id], reason: "known".into(), by: "ann".into(), what: String::new() };
    assert_eq!(store.discard(&Scope::All, discard).await.unwrap(), [Discarded::Done]);
    store.cancel(&Scope::All, vec![stored[8].id().unwrap()]).await.unwrap();
    let right = [(share.queue, [3, 0, 2, 1])];
    assert_eq!(depth_of_each(&store).await, right);
    store.prune().await.unwrap();
    assert!(w.count(DELTAS).await > 0);
    assert_eq!(depth_of_each(&store).await, right);
    clock.advance(Millis::from_secs(3601));
    store.prune().await.unwrap();
    assert_eq!((w.count(DELTAS).await, depth_of_each(&store).await), (0, right.to_vec()));
    w.end().await;
}

#[tokio::test]
async fn a_recount_corrects_the_balances_of_every_queue() {
    let w = World::new().await;
    let (store, clock) = stopped(&w).await;
    let email = NewJob { queue: QueueName::new("email").unwrap(), ..job() };
    let stored = store.enqueue(vec![job(), job(), email], Atomicity::Each).await.unwrap();
    store.cancel(&Scope::All, vec![stored[2].id().unwrap()]).await.unwrap();
    clock.advance(Millis::from_secs(1));
    store.prune().await.unwrap();
    let right = depth_of_each(&store).await;
    assert_eq!(right.iter().map(|(_, depth)| *depth).collect::<Vec<_>>(), [[2, 0, 0, 0], [0; 4]]);
    let wrong = format!("UPDATE {}.balances SET live = live + 7, running = running + 5, dead = dead + 3", w.schema);
    assert_eq!(w.client.execute(&wrong, &[]).await.unwrap(), 2);
    assert_ne!(depth_of_each(&store).await, right);
    clock.advance(Millis::from_secs(3601));
    store.prune().await.unwrap();
    assert_eq!(depth_of_each(&store).await, right);
    w.end().await;
}

#[tokio::test]
async fn jobs_deleted_by_hand_are_noticed_within_the_hour() {
    let w = World::new().await;
    let (store, clock) = stopped(&w).await;
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
