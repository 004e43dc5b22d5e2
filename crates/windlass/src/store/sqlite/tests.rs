//! Tests for SQLite only. The conformance suite tests what all stores share.

use super::SqliteStore;
use crate::clock::Clock;
use crate::job::{ClaimedJob, LeaseId, NewJob};
use crate::leases::transition::{Trace, commit_of};
use crate::store::JobLife;
use crate::store::Reads;
use crate::store::Registry;
use crate::store::sqlite::life::enqueue;
use crate::store::{
    Atomicity, Claim, Committed, Enqueued, JobFilter, Leases, Migrations, Options, Order, Page, Reap, Scope,
    SettingKey, Share, Spared, StoreError, WorkerId,
};
use rusqlite::Connection;
use std::sync::Arc;
use tempfile::TempDir;
use windlass_core::job::Kind;
use windlass_core::policy::Partial;
use windlass_core::{JobId, Millis, Outcome, Roll, State, Timestamp};

mod faults;
mod log;
mod schema;
mod sharing;
mod statements;

/// A store in its own directory, with a stopped clock.
struct Home {
    dir: TempDir,
    clock: Clock,
}

impl Home {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), clock: Clock::manual(Timestamp::from_millis(1_767_268_800_000)) }
    }

    fn path(&self) -> String {
        self.dir.path().join("jobs.db").to_str().unwrap().to_owned()
    }

    async fn open(&self) -> Arc<SqliteStore> {
        self.try_open(Migrations::Run).await.unwrap()
    }

    async fn try_open(&self, migrations: Migrations) -> Result<Arc<SqliteStore>, StoreError> {
        let options = Options { clock: self.clock.clone(), migrations, ..Options::default() };
        SqliteStore::open(&self.path(), options).await
    }

    /// The application's own connection to the file.
    fn connect(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

fn job() -> NewJob {
    let policy = Partial::resolve(&[Partial::parse_line("exponential").unwrap()], &[]).unwrap();
    NewJob::new(Kind::new("email").unwrap(), r#"{"to":"ann"}"#, Arc::new(policy))
}

async fn put(store: &SqliteStore) -> JobId {
    let stored = store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    stored[0].id().unwrap()
}

async fn claim(store: &SqliteStore, slots: u32) -> Vec<ClaimedJob> {
    let queue = store.queues().await.unwrap()[0].id;
    let request = Claim {
        worker: WorkerId::new("w1"),
        leases: Leases::Shared(LeaseId::draw(&store.random)),
        lease_for: Millis::from_secs(30),
        shares: vec![Share { queue, slots, ahead: 0 }],
        limit: slots,
        suspects: 1,
        kinds: None,
    };
    store.claim(request).await.unwrap().jobs
}

fn success(store: &SqliteStore, job: &ClaimedJob) -> crate::store::Commit {
    let now = store.clock().now();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    commit_of(job, &Outcome::Succeeded, trace, Roll(0))
}

async fn count(store: &SqliteStore) -> usize {
    let page = Page { after: None, limit: 1000, order: Order::OldestFirst };
    store.jobs(&Scope::All, &JobFilter::default(), page).await.unwrap().len()
}

#[tokio::test]
async fn concurrent_commands_share_commits() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    let other = home.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = store.commits();
    let putting: Vec<_> = (0..64)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { put(&store).await })
        })
        .collect();
    // All have been polled, so all are in the writer's queue or with the writer, which waits for the lock.
    tokio::task::yield_now().await;
    other.execute_batch("COMMIT").unwrap();
    for task in putting {
        task.await.unwrap();
    }
    assert_eq!(count(&store).await, 65);
    let commits = store.commits() - before;
    assert!(commits <= 8, "64 enqueues took {commits} commits");
}

#[tokio::test]
async fn a_failed_command_does_not_affect_others_in_its_transaction() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    let other = home.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (a, bad, b, ()) = tokio::join!(
        store.enqueue(vec![job()], Atomicity::Each),
        store.write(|tx| -> Result<(), StoreError> {
            enqueue::enqueue(tx, &[job()], Atomicity::Each)?;
            Err(StoreError::Invalid("no".into()))
        }),
        store.enqueue(vec![job()], Atomicity::Each),
        async { other.execute_batch("COMMIT").unwrap() },
    );
    assert!(matches!(bad, Err(StoreError::Invalid(_))), "{bad:?}");
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(count(&store).await, 3);
}

#[tokio::test]
async fn ids_are_not_reused_after_pruning() {
    let home = Home::new();
    let mut store = home.open().await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    store.put_setting(&key, Some(r#"{"retention":{"succeeded":"1s"}}"#)).await.unwrap();
    let mut last = JobId(0);
    for _ in 0..3 {
        let id = put(&store).await;
        assert!(id > last, "{id} after {last}");
        last = id;
        let jobs = claim(&store, 1).await;
        let lease = jobs[0].lease;
        store.commit(vec![success(&store, &jobs[0])], vec![lease]).await.unwrap();
        home.clock.advance(Millis::from_secs(2));
        assert_eq!(store.prune().await.unwrap(), 1);
        assert_eq!(count(&store).await, 0);
        drop(store);
        store = home.open().await;
    }
}

#[tokio::test]
async fn the_views_show_readable_values() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    put(&store).await;
    let jobs = claim(&store, 1).await;
    store.commit(vec![success(&store, &jobs[0])], vec![jobs[0].lease]).await.unwrap();
    let conn = home.connect();
    let ask = |sql: &str| -> Vec<String> {
        let mut select = conn.prepare(sql).unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let states = ask("SELECT state || ' ' || queue || ' ' || delivery FROM windlass_all_jobs ORDER BY id");
    assert_eq!(states, ["succeeded default AT_LEAST_ONCE", "queued default AT_LEAST_ONCE"]);
    assert_eq!(ask("SELECT label || ' ' || status FROM windlass_all_attempts"), ["Initial SUCCESS"]);
    assert_eq!(
        ask("SELECT queue || ' ' || msg_id || ' ' || read_ct || ' ' || vt FROM windlass_messages"),
        ["default 2 0 2026-01-01T12:00:00.000Z"]
    );
    assert!(ask("SELECT kind FROM windlass_dead_letters").is_empty());
}

#[tokio::test]
async fn a_backup_opens_as_a_store() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    let copy = home.dir.path().join("copy.db").to_str().unwrap().to_owned();
    store.backup(&copy).await.unwrap();
    put(&store).await;
    let restored = SqliteStore::open(&copy, Options::default()).await.unwrap();
    assert_eq!(count(&restored).await, 1);
    assert!(matches!(store.backup(&copy).await, Err(StoreError::Invalid(_))), "an existing file is not overwritten");
}

#[tokio::test]
async fn health_reports_engine_and_schema_without_warnings() {
    let home = Home::new();
    let health = home.open().await.health().await.unwrap();
    assert!(health.engine.starts_with("sqlite 3."), "{}", health.engine);
    assert_eq!(health.schema, super::connection::migrate::SCHEMA.number());
    assert_eq!(health.warnings, Vec::<String>::new());
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_access_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let store = home.open().await;
    let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
