//! A store whose clock a test sets while time goes on.

use futures_util::future::BoxFuture;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use windlass::core::job::Kind;
use windlass::core::policy::Partial;
use windlass::core::{Executor, Failure, JobId, Millis, Outcome, Roll};
use windlass::low_level::clock::SetMachine;
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob, RunAt};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{
    Atomicity, Claim, Committed, Leases, Options, Reap, Share, Spared, Store, Transitioned, WorkerId,
};
use windlass::low_level::stores::{postgres::PostgresStore, sqlite::SqliteStore};
use windlass::{Clock, Random, Windlass};

pub const LEASE: Millis = Millis::from_secs(30);
pub const HOUR: i64 = 3_600_000;

type Set = Box<dyn Fn(i64) -> BoxFuture<'static, ()> + Send + Sync>;

pub struct World {
    pub store: Arc<dyn Store>,
    pub windlass: Windlass,
    set: Set,
    _home: Box<dyn Any + Send + Sync>,
}

impl World {
    pub async fn sqlite() -> Self {
        let (home, machine) = (tempfile::tempdir().unwrap(), SetMachine::default());
        let store = sqlite_at(&home, &machine).await;
        let set: Set = Box::new(move |by| {
            machine.set_wall(by);
            Box::pin(async {})
        });
        Self { windlass: Windlass::from_store(store.clone()), store, set, _home: Box::new(home) }
    }

    /// The server's clock is the function `clock_timestamp`; a schema before `pg_catalog` has another one.
    pub async fn postgres() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect("these tests need a Postgres: scripts/with-postgres");
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let name = format!("clock_{:016x}", Random::system().number());
        let make = format!(
            "CREATE SCHEMA {name};
             CREATE TABLE {name}.set (by interval); INSERT INTO {name}.set VALUES ('0');
             CREATE FUNCTION {name}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
             AS 'SELECT pg_catalog.clock_timestamp() + by FROM {name}.set'"
        );
        client.batch_execute(&make).await.unwrap();
        let separator = if url.contains('?') { '&' } else { '?' };
        let set_url = format!("{url}{separator}options=-c%20search_path%3D{name},pg_catalog");
        let options = Options { schema: format!("{name}_jobs"), connections: 4, ..Options::default() };
        let store: Arc<dyn Store> = PostgresStore::open(&set_url, options).await.unwrap();
        let client = Arc::new(client);
        let home = Dropped(client.clone(), name.clone());
        let set: Set = Box::new(move |by| {
            let (client, name) = (client.clone(), name.clone());
            Box::pin(async move {
                let set = format!("UPDATE {name}.set SET by = by + '{by} milliseconds'");
                client.batch_execute(&set).await.unwrap();
            })
        });
        Self { windlass: Windlass::from_store(store.clone()), store, set, _home: Box::new(home) }
    }

    /// Sets the clock forward, or back, by so many milliseconds.
    pub async fn set(&self, by: i64) {
        (self.set)(by).await;
    }

    pub async fn put(&self, run_at: RunAt) -> JobId {
        let job = NewJob { run_at, ..job() };
        self.store.enqueue(vec![job], Atomicity::Each).await.unwrap()[0].id().unwrap()
    }

    pub async fn claim(&self) -> Vec<ClaimedJob> {
        claim(&self.store, LEASE).await
    }

    pub async fn reap(&self) -> Vec<Transitioned> {
        reap(&self.store).await
    }
}

/// Removes the schemas of a test. Left-over ones harm nobody.
struct Dropped(Arc<tokio_postgres::Client>, String);

impl Drop for Dropped {
    fn drop(&mut self) {
        let (client, name) = (self.0.clone(), self.1.clone());
        tokio::spawn(async move {
            let _ = client.batch_execute(&format!("DROP SCHEMA {name} CASCADE; DROP SCHEMA {name}_jobs CASCADE")).await;
        });
    }
}

pub async fn sqlite_at(home: &tempfile::TempDir, machine: &SetMachine) -> Arc<dyn Store> {
    let path = home.path().join("jobs.db").to_str().unwrap().to_owned();
    let options = Options { clock: Clock::of(Arc::new(machine.clone())), ..Options::default() };
    SqliteStore::open(&path, options).await.unwrap()
}

pub fn job() -> NewJob {
    let policy = Partial::resolve(&[Partial::parse_line("fixed:base=10s,retries=3").unwrap()], &[]).unwrap();
    NewJob::new(Kind::new("email").unwrap(), "{}", Arc::new(policy))
}

pub async fn claim(store: &Arc<dyn Store>, lease_for: Millis) -> Vec<ClaimedJob> {
    let (tenant, name) = Default::default();
    let queue = store.register_queue(&tenant, &name, Executor::Worker).await.unwrap().id;
    let claim = Claim {
        worker: WorkerId::new("w1"),
        leases: Leases::Shared(LeaseId::draw(&Random::system())),
        lease_for,
        limit: 10,
        shares: vec![Share { queue, slots: 10, ahead: 0 }],
        suspects: 10,
        kinds: None,
    };
    store.claim(claim).await.unwrap().jobs
}

pub async fn reap(store: &Arc<dyn Store>) -> Vec<Transitioned> {
    store.reap(Reap::Expired { spared: Spared::none() }, 100).await.unwrap()
}

pub async fn succeed(store: &Arc<dyn Store>, job: &ClaimedJob) -> Committed {
    end(store, job, &Outcome::Succeeded).await
}

pub async fn fail(store: &Arc<dyn Store>, job: &ClaimedJob) -> Committed {
    end(store, job, &Outcome::Failed(Failure::new("not now"))).await
}

async fn end(store: &Arc<dyn Store>, job: &ClaimedJob, outcome: &Outcome) -> Committed {
    let now = store.clock().now();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    let commit = commit_of(job, outcome, trace, Roll(0));
    store.commit(vec![commit], vec![]).await.unwrap().remove(0)
}

/// Asks again until there is an answer.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.unwrap_or_else(|_| panic!("{what}: never"))
}
