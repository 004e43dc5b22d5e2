//! A store with a clock that tests set, and short helpers for what a worker does.

use std::any::Any;
use std::sync::Arc;
use windlass::Clock;
use windlass::Random;
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::policy::Partial;
use windlass::core::{Attempt, Executor, Failure, JobId, Millis, Outcome, Policy, Roll, Timestamp};
use windlass::low_level::job::{ClaimedJob, Job, LeaseId, NewJob, QueueId};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{
    Atomicity, Claim, Claimed, Commit, Committed, Enqueued, JobFilter, Leases, Options, Order, Page, Reap, Replay,
    ReplayOnly, Replayed, Scope, Share, Spared, Store, Transitioned, WorkerId, memory::MemoryStore,
};

#[cfg(feature = "postgres")]
use windlass::low_level::stores::postgres::PostgresStore;

pub const LEASE: Millis = Millis::from_secs(30);
pub const SECOND: Millis = Millis::from_secs(1);
/// 2026-01-01T12:00:00Z
pub const START: Timestamp = Timestamp::from_millis(1_767_268_800_000);

/// A store under test.
pub struct World {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub random: Random,
    reopen: Reopen,
    /// Whatever must live as long as the store: a temporary directory, a schema to drop.
    _home: Box<dyn Any + Send + Sync>,
}

type Reopen = Box<dyn Fn() -> futures_util::future::BoxFuture<'static, Arc<dyn Store>> + Send + Sync>;

pub fn options(clock: &Clock, schema: &str) -> Options {
    Options { clock: clock.clone(), random: Random::seeded(7), schema: schema.into(), ..Options::default() }
}

impl World {
    pub async fn memory() -> Self {
        let clock = Clock::manual(START);
        let store: Arc<dyn Store> = MemoryStore::new(options(&clock, "windlass"));
        let same = store.clone();
        Self::new(
            store,
            clock,
            Box::new(()),
            Box::new(move || {
                let same = same.clone();
                Box::pin(async move { same })
            }),
        )
    }

    fn new(store: Arc<dyn Store>, clock: Clock, home: Box<dyn Any + Send + Sync>, reopen: Reopen) -> Self {
        Self { store, clock, random: Random::seeded(11), reopen, _home: home }
    }

    /// The same data, seen by another process: a second handle (the memory store has only one).
    pub async fn reopened(&self) -> Arc<dyn Store> {
        (self.reopen)().await
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn advance(&self, span: Millis) {
        self.clock.advance(span);
    }

    pub async fn put(&self, job: NewJob) -> JobId {
        self.put_all(vec![job]).await[0]
    }

    pub async fn put_all(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        let stored = self.store.enqueue(jobs, Atomicity::Each).await.unwrap();
        stored.iter().map(|e| e.id().unwrap_or_else(|| panic!("not stored: {e:?}"))).collect()
    }

    pub async fn try_put(&self, job: NewJob) -> Enqueued {
        self.store.enqueue(vec![job], Atomicity::Each).await.unwrap().remove(0)
    }

    pub async fn queue_id(&self, name: &str) -> QueueId {
        let name = QueueName::new(name).unwrap();
        self.store.register_queue(&Tenant::default(), &name, Executor::Worker).await.unwrap().id
    }

    /// A claim of up to `slots` jobs from each queue, in this order.
    pub async fn request(&self, queues: &[&str], slots: u32) -> Claim {
        let mut shares = Vec::new();
        for name in queues {
            shares.push(Share { queue: self.queue_id(name).await, slots, ahead: 0 });
        }
        self.request_shares(shares)
    }

    pub fn request_shares(&self, shares: Vec<Share>) -> Claim {
        Claim {
            worker: WorkerId::new("w1"),
            leases: Leases::Shared(LeaseId::draw(&self.random)),
            lease_for: LEASE,
            shares,
            limit: 10_000,
            suspects: 10_000,
            kinds: None,
        }
    }

    pub async fn claim(&self, queues: &[&str], slots: u32) -> Claimed {
        let request = self.request(queues, slots).await;
        self.store.claim(request).await.unwrap()
    }

    /// One job of the queue `default`, which must be due.
    pub async fn claim_one(&self) -> ClaimedJob {
        let mut jobs = self.claim(&["default"], 1).await.jobs;
        assert_eq!(jobs.len(), 1, "one job should be due");
        jobs.remove(0)
    }

    pub fn commit_of(&self, job: &ClaimedJob, outcome: &Outcome) -> Commit {
        let trace = Trace {
            started_at: job.claimed_at.unwrap(),
            finished_at: self.now(),
            worker: "w1".into(),
            note: None,
            result: None,
        };
        commit_of(job, outcome, trace, Roll(1 << 63))
    }

    pub async fn commit(&self, job: &ClaimedJob, outcome: Outcome) -> Committed {
        let commit = self.commit_of(job, &outcome);
        self.store.commit(vec![commit], vec![]).await.unwrap().remove(0)
    }

    pub async fn succeed(&self, job: &ClaimedJob) -> Committed {
        self.commit(job, Outcome::Succeeded).await
    }

    pub async fn fail(&self, job: &ClaimedJob) -> Committed {
        self.commit(job, failed("boom")).await
    }

    /// Claims a job of the queue `default` and fails it for good.
    pub async fn fail_for_good(&self, message: &str) -> JobId {
        let job = self.claim_one().await;
        let outcome = Outcome::Failed(Failure::permanent(message).class("Broken"));
        assert_applied(&self.commit(&job, outcome).await);
        job.id
    }

    /// Sends a finished job again.
    pub async fn replay(&self, id: JobId) {
        let replay = Replay::new(vec![id], ReplayOnly::Any, "ann");
        assert_eq!(self.store.replay(&Scope::All, replay).await.unwrap(), [Replayed::Queued]);
    }

    pub async fn reap(&self) -> Vec<Transitioned> {
        self.store.reap(Reap::Expired { spared: Spared::none() }, 100).await.unwrap()
    }

    pub async fn get(&self, id: JobId) -> Job {
        self.find(id).await.unwrap_or_else(|| panic!("job {id} should exist"))
    }

    pub async fn find(&self, id: JobId) -> Option<Job> {
        self.store.job(&Scope::All, id).await.unwrap()
    }

    pub async fn ledger(&self, id: JobId) -> Vec<Attempt> {
        self.store.attempts(&Scope::All, id, 1000).await.unwrap()
    }

    pub async fn list(&self, filter: JobFilter) -> Vec<JobId> {
        let jobs = self.store.jobs(&Scope::All, &filter, all()).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect()
    }
}

#[cfg(feature = "sqlite")]
impl World {
    pub async fn sqlite() -> Self {
        use windlass::low_level::stores::sqlite::SqliteStore;
        let clock = Clock::manual(START);
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("jobs.db").to_str().unwrap().to_owned();
        let store = SqliteStore::open(&path, options(&clock, "windlass")).await.unwrap();
        let again = clock.clone();
        Self::new(
            store,
            clock,
            Box::new(home),
            Box::new(move || {
                let (path, clock) = (path.clone(), again.clone());
                Box::pin(async move {
                    SqliteStore::open(&path, options(&clock, "windlass")).await.unwrap() as Arc<dyn Store>
                })
            }),
        )
    }
}

#[cfg(all(feature = "sealing", feature = "sqlite"))]
impl World {
    /// A SQLite store whose values are sealed.
    pub async fn sealed() -> Self {
        let plain = Self::sqlite().await;
        let sealed = |store| {
            let ring = windlass::KeyRing::parse(&windlass::KeyRing::generate("test", &Random::seeded(3)));
            windlass::low_level::sealed(store, ring.unwrap(), Random::system())
        };
        let Self { store, clock, reopen, _home: home, .. } = plain;
        let reopen: Reopen = Box::new(move || {
            let reopened = reopen();
            Box::pin(async move { sealed(reopened.await) })
        });
        Self::new(sealed(store), clock, home, reopen)
    }
}

#[cfg(feature = "postgres")]
pub fn postgres_url() -> String {
    std::env::var("WINDLASS_TEST_POSTGRES").expect(
        "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`, \
         or set WINDLASS_TEST_POSTGRES to the URL of a database they may create schemas in",
    )
}

/// A pgbouncer in transaction mode in front of that server.
#[cfg(feature = "postgres")]
pub fn pgbouncer_url() -> String {
    std::env::var("WINDLASS_TEST_PGBOUNCER").expect(
        "these tests need a pgbouncer before the Postgres server: run them with scripts/test or \
         `scripts/with-postgres cargo test …`, or set WINDLASS_TEST_PGBOUNCER to the URL of one",
    )
}

#[cfg(feature = "postgres")]
impl World {
    pub async fn postgres() -> Self {
        Self::postgres_at(postgres_url()).await
    }

    /// Postgres again, reached through a pooler.
    pub async fn pooled() -> Self {
        Self::postgres_at(pgbouncer_url()).await
    }

    /// Postgres again, on a pool that belongs to the program.
    #[cfg(feature = "deadpool")]
    pub async fn shared() -> Self {
        let config = postgres_url().parse().unwrap();
        let manager = deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(6).build().unwrap();
        Self::postgres_by(move |options| {
            let pool = Arc::new(pool.clone());
            async move { PostgresStore::open_on(pool, options).await.unwrap() }
        })
        .await
    }

    async fn postgres_at(url: String) -> Self {
        Self::postgres_by(move |options| {
            let url = url.clone();
            async move { PostgresStore::open(&url, options).await.unwrap() }
        })
        .await
    }

    async fn postgres_by<F>(open: impl Fn(Options) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<PostgresStore>> + Send + 'static,
    {
        let clock = Clock::manual(START);
        let schema = format!("test_{:016x}", Random::system().number());
        let home = Box::new(Schema { url: postgres_url(), name: schema.clone() });
        let options = Options { connections: 4, ..options(&clock, &schema) };
        let store = open(options.clone()).await;
        let reopen: Reopen = Box::new(move || {
            let opening = open(options.clone());
            Box::pin(async move { opening.await as Arc<dyn Store> })
        });
        Self::new(store, clock, home, reopen)
    }
}

/// A schema that is dropped when its test ends.
#[cfg(feature = "postgres")]
pub struct Schema {
    pub url: String,
    pub name: String,
}

#[cfg(feature = "postgres")]
impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        // Its own thread and runtime: the test's runtime may be ending.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await else {
                    return;
                };
                let connection = tokio::spawn(connection);
                // A leftover schema harms nobody: the next run uses another name.
                let _ = client.batch_execute(&format!("SET lock_timeout = '5s'; DROP SCHEMA {name} CASCADE")).await;
                drop(client);
                let _ = connection.await;
            });
        });
        let _ = dropping.join();
    }
}

/// A policy of three retries, each 10 s later, without jitter.
pub fn policy() -> Arc<Policy> {
    line("fixed:base=10s,jitter=none,cap=none,retries=3")
}

pub fn line(text: &str) -> Arc<Policy> {
    Arc::new(Partial::resolve(&[Partial::parse_line(text).unwrap()], &[]).unwrap())
}

pub fn job() -> NewJob {
    NewJob::new(Kind::new("email").unwrap(), r#"{"to":"ann"}"#, policy())
}

pub fn job_in(queue: &str) -> NewJob {
    NewJob { queue: QueueName::new(queue).unwrap(), ..job() }
}

pub fn failed(message: &str) -> Outcome {
    Outcome::Failed(Failure::new(message))
}

pub fn all() -> Page {
    Page { after: None, limit: 1000, order: Order::OldestFirst }
}

#[track_caller]
pub fn assert_applied(committed: &Committed) {
    assert!(matches!(committed, Committed::Applied(_)), "{committed:?}");
}

pub fn ids(claimed: &Claimed) -> Vec<JobId> {
    claimed.jobs.iter().map(|job| job.id).collect()
}

pub fn tenant(name: &str) -> Tenant {
    Tenant::new(name).unwrap()
}
