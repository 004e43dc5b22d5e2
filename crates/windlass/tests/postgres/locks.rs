//! What others do at the same moment: a test holds the lock that they would hold, makes their change, and commits when
//! the store waits for it. What they have only locked is skipped.

use crate::world::{World, claim, job};
use std::sync::Arc;
use tokio::task::JoinHandle;
use windlass::core::gate::{Hold, HoldOrigin};
use windlass::core::job::{Kind, QueueName};
use windlass::core::{Failure, JobId, Millis, Outcome, Roll, State, Timestamp};
use windlass::low_level::job::{ClaimedJob, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::*;

/// Does this in an open transaction.
async fn begin(w: &World, statements: &str) {
    let statements = statements.replace("{s}", &w.schema);
    w.client.batch_execute(&format!("BEGIN; {statements}")).await.unwrap();
}

/// Starts a call, ends the open transaction once the call waits for it, and returns what the call returns.
async fn meanwhile<T, F>(w: &World, call: impl FnOnce(Arc<PostgresStore>) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let call: JoinHandle<T> = tokio::spawn(call(w.store.clone()));
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    while !call.is_finished() && w.count(waiting).await == 0 {}
    w.client.batch_execute("COMMIT").await.unwrap();
    call.await.unwrap()
}

async fn put(w: &World, jobs: Vec<NewJob>) -> Vec<JobId> {
    let stored = w.store.enqueue(jobs, Atomicity::Each).await.unwrap();
    stored.iter().map(|stored| stored.id().unwrap()).collect()
}

fn ended(job: &ClaimedJob, outcome: &Outcome) -> Commit {
    let now = job.claimed_at.unwrap();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), ..Trace::default() };
    commit_of(job, outcome, trace, Roll(0))
}

fn keyed(key: &str) -> NewJob {
    NewJob { limit_key: Some(key.into()), ..job() }
}

async fn limit(w: &World, settings: &str) {
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(settings)).await.unwrap();
}

/// Holds the key `held`, so that its gate has the state of a hold.
async fn hold(w: &World) {
    let queue = QueueName::new("default").unwrap();
    let name = GateName { tenant: Some(Default::default()), queue, key: Some("held".into()) };
    let (since, until) = (Timestamp::from_millis(0), Timestamp::from_millis(i64::MAX / 2));
    let hold = Hold { since, until, origin: HoldOrigin::Operator("ann".into()), reason: String::new() };
    w.store.put_hold(&name, Some(&hold)).await.unwrap();
}

const HOLD_K: &str = "UPDATE {s}.gates SET state = (SELECT state FROM {s}.gates WHERE key = 'held') WHERE key = 'k'";

#[tokio::test]
async fn a_commit_obeys_a_cancel_that_comes_first() {
    let w = World::new().await;
    put(&w, vec![job()]).await;
    let running = w.claim(1).await.remove(0);
    begin(&w, "SELECT FROM {s}.leases FOR UPDATE; UPDATE {s}.leases SET cancels = job_ids").await;
    let commit = ended(&running, &Outcome::Failed(Failure::new("no")));
    let committed = meanwhile(&w, async move |store| store.commit(vec![commit], vec![]).await.unwrap()).await;
    assert_eq!(committed, [Committed::CancelRequested]);
    w.end().await;
}

#[tokio::test]
async fn a_cancel_finds_the_job_where_a_commit_or_a_claim_has_moved_it() {
    let w = World::new().await;
    let ids = put(&w, vec![job(), job()]).await;
    let running = w.claim(1).await.remove(0);
    assert_eq!(running.id, ids[0]);
    let commit = "SELECT FROM {s}.leases FOR KEY SHARE;
        INSERT INTO {s}.attempts
            (job_id, lease_id, claimed_at, started_at, finished_at, ended_at, number, retry, worker, state, queue_id)
        SELECT j.id, l.id, l.claimed_at, l.claimed_at, l.claimed_at, l.claimed_at, 1, 0, 'w1', 'succeeded', j.queue_id
        FROM {s}.leases l JOIN {s}.jobs j ON j.id = l.job_ids[1]";
    begin(&w, commit).await;
    let cancel = |id| async move |store: Arc<PostgresStore>| store.cancel(&Scope::All, vec![id]).await.unwrap();
    assert_eq!(meanwhile(&w, cancel(ids[0])).await, [Cancelled::Finished(State::Succeeded)]);
    let claim = "WITH gone AS (DELETE FROM {s}.waiting RETURNING id, due_at)
        INSERT INTO {s}.leases (id, claimed_at, worker, job_ids) SELECT 77, due_at, 'w2', ARRAY[id] FROM gone;
        INSERT INTO {s}.lease_ends (id, expires_at, length_ms)
            SELECT id, claimed_at + 30000, 30000 FROM {s}.leases WHERE id = 77";
    begin(&w, claim).await;
    assert_eq!(meanwhile(&w, cancel(ids[1])).await, [Cancelled::Requested]);
    w.end().await;
}

#[tokio::test]
async fn a_discard_finds_the_job_where_a_replay_has_moved_it() {
    let w = World::new().await;
    let ids = put(&w, vec![job()]).await;
    let running = w.claim(1).await.remove(0);
    let commit = ended(&running, &Outcome::Failed(Failure::permanent("no")));
    w.store.commit(vec![commit], vec![]).await.unwrap();
    let replay = "INSERT INTO {s}.waiting (id, queue_id, due_at, priority, at_most_once, attempt, replays)
            SELECT id, queue_id, due_at, 0, false, 1, 1 FROM {s}.jobs;
        UPDATE {s}.attempts SET state = NULL, reason = NULL, ended_at = NULL, queue_id = NULL";
    begin(&w, replay).await;
    let discard = Discard { ids, reason: "known".into(), by: "ann".into(), what: String::new() };
    let discarded = meanwhile(&w, async move |store| store.discard(&Scope::All, discard).await.unwrap()).await;
    assert_eq!(discarded, [Discarded::NotDead]);
    w.end().await;
}

#[tokio::test]
async fn an_operation_locks_no_attempt_that_did_not_end_its_job() {
    let w = World::new().await;
    let ids = put(&w, vec![job()]).await;
    let running = w.claim(1).await.remove(0);
    w.store.commit(vec![ended(&running, &Outcome::Failed(Failure::new("no")))], vec![]).await.unwrap();
    let amend = Amend { priority: Some(windlass::core::Priority::High), run_at: None };
    w.store.amend(&Scope::All, ids[0], amend).await.unwrap();
    assert_eq!(w.count("SELECT count(*) FROM {s}.attempts").await, 1);
    assert_eq!(w.count("SELECT count(*) FROM {s}.attempts WHERE xmax::text <> '0'").await, 0);
    w.end().await;
}

#[tokio::test]
async fn a_firing_is_not_ours_if_another_node_fires_first() {
    let w = World::new().await;
    let nominal = Timestamp::from_millis(1_000_000);
    let spec = ScheduleSpec {
        tenant: Default::default(),
        cadence: "every 60s".into(),
        zone: "UTC".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Allow,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: job(),
    };
    let schedule = w.store.add_schedule(spec, Some(nominal)).await.unwrap().id;
    begin(&w, "UPDATE {s}.schedules SET next_at = next_at + 60000").await;
    let trigger = Trigger::Due { nominal, next_at: Some(nominal + Millis::from_secs(60)) };
    let firing = Firing { schedule, trigger, job: Some(job()) };
    let fired = meanwhile(&w, async move |store| store.fire(firing).await.unwrap()).await;
    assert_eq!(fired, Fired::NotOurs);
    w.end().await;
}

#[tokio::test]
async fn a_claim_starts_nothing_at_a_gate_that_is_held_first() {
    // Gates that only count are read without a lock and compared as they are counted. Others are locked.
    for settings in [r#"{"limits":{"perKey":{"concurrency":9}}}"#, r#"{"limits":{"perKey":{"rate":"900/1s"}}}"#] {
        let w = World::new().await;
        limit(&w, settings).await;
        hold(&w).await;
        put(&w, vec![keyed("k"), keyed("k")]).await;
        assert_eq!(w.claim(1).await.len(), 1);
        let share = Share { queue: w.queue().await, slots: 1, ahead: 0 };
        begin(&w, HOLD_K).await;
        let claimed = meanwhile(&w, async move |store| store.claim(claim(share)).await.unwrap()).await;
        assert!(claimed.jobs.is_empty(), "{settings}");
        w.end().await;
    }
}

#[tokio::test]
async fn a_claim_asks_gates_after_the_claim_before_it() {
    let w = World::new().await;
    limit(&w, r#"{"limits":{"perKey":{"concurrency":2}}}"#).await;
    put(&w, vec![keyed("k"), keyed("k")]).await;
    assert_eq!(w.claim(1).await.len(), 1);
    let share = Share { queue: w.queue().await, slots: 1, ahead: 0 };
    // The other claim has the lock of the queue's gates and starts one more.
    let other =
        "SELECT pg_advisory_xact_lock(hashtextextended('{s} gates default', 0)); UPDATE {s}.gates SET in_use = 2";
    begin(&w, other).await;
    let claimed = meanwhile(&w, async move |store| store.claim(claim(share)).await.unwrap()).await;
    assert!(claimed.jobs.is_empty());
    w.end().await;
}

#[tokio::test]
async fn an_import_that_another_has_overtaken_stores_nothing() {
    let w = World::new().await;
    let batch = |before: Option<&str>, after: &str| Import {
        origin: before.is_none().then(|| Origin { installation: "other".into(), last_id: JobId(9) }),
        before: before.map(Into::into),
        after: after.into(),
        schedules: vec![],
        jobs: vec![],
    };
    assert_eq!(w.store.import(batch(None, "1")).await.unwrap(), Imported::Done { existing: 0 });
    let other = "SELECT pg_advisory_xact_lock(hashtextextended('\"{s}\" import', 0));
        UPDATE {s}.settings SET value = '2' WHERE value = '1'";
    begin(&w, other).await;
    let late = batch(Some("1"), "3");
    let imported = meanwhile(&w, async move |store| store.import(late).await.unwrap()).await;
    assert_eq!(imported, Imported::Overtaken);
    w.end().await;
}

#[tokio::test]
async fn claims_skip_what_others_have_locked() {
    let w = World::new().await;
    let ids = put(&w, vec![job(); 3]).await;
    let queue = w.queue().await;
    let share = Share { queue, slots: 1, ahead: 0 };
    begin(&w, "SELECT FROM {s}.waiting ORDER BY id LIMIT 1 FOR UPDATE").await;
    assert_eq!(w.claim(1).await[0].id, ids[1]);
    let kinds: Kinds = [Kind::new("email").unwrap()].into_iter().collect();
    let claimed = w.store.claim(Claim { kinds: Some(kinds), ..claim(share) }).await.unwrap();
    assert_eq!(claimed.jobs[0].id, ids[2]);
    w.client.batch_execute("ROLLBACK").await.unwrap();
    w.end().await;
}

// Apart from the test above: a claim starts where the claim before it ended, and does not look at the locked job again.
#[tokio::test]
async fn claims_of_a_limited_queue_skip_what_others_have_locked() {
    let w = World::new().await;
    limit(&w, r#"{"limits":{"perKey":{"concurrency":9}}}"#).await;
    let ids = put(&w, vec![keyed("k"), keyed("k")]).await;
    begin(&w, "SELECT FROM {s}.waiting ORDER BY id LIMIT 1 FOR UPDATE").await;
    assert_eq!(w.claim(1).await[0].id, ids[1]);
    w.client.batch_execute("ROLLBACK").await.unwrap();
    w.end().await;
}

#[tokio::test]
async fn a_claim_locks_no_job_of_a_paused_limited_queue() {
    let w = World::new().await;
    limit(&w, r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    put(&w, vec![keyed("k"), keyed("k")]).await;
    let running = w.claim(5).await.remove(0);
    // One job is parked behind a gate that is open again, and another one is due.
    w.store.commit(vec![ended(&running, &Outcome::Succeeded)], vec![]).await.unwrap();
    put(&w, vec![job()]).await;
    let (tenant, queue) = Default::default();
    w.store.pause_queue(&tenant, &queue, true).await.unwrap();
    // Who locked the rows last.
    const LOCKS: &str = "SELECT sum(xmax::text::bigint)::bigint FROM {s}.waiting";
    let before = w.count(LOCKS).await;
    assert!(w.claim(5).await.is_empty());
    assert_eq!(w.count(LOCKS).await, before);
    w.store.pause_queue(&tenant, &queue, false).await.unwrap();
    assert_eq!(w.claim(5).await.len(), 2);
    w.end().await;
}

#[tokio::test]
async fn upkeep_skips_what_others_have_locked() {
    let w = World::new().await;
    let past = Timestamp::from_millis(1);
    let late = || NewJob { start_by: Some(past), ..job() };
    put(&w, vec![late(), late()]).await;
    begin(&w, "SELECT FROM {s}.waiting ORDER BY id LIMIT 1 FOR UPDATE").await;
    assert_eq!(w.store.expire(10).await.unwrap().len(), 1);
    w.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(w.store.expire(10).await.unwrap().len(), 1);
    put(&w, vec![job(), job()]).await;
    for _ in 0..2 {
        assert_eq!(w.claim(1).await.len(), 1);
    }
    begin(&w, "SELECT FROM {s}.leases ORDER BY id LIMIT 1 FOR UPDATE").await;
    let reap = || Reap::Of(WorkerId::new("w1"));
    assert_eq!(w.store.reap(reap(), 10).await.unwrap().len(), 1);
    w.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(w.store.reap(reap(), 10).await.unwrap().len(), 1);
    w.end().await;
}
