//! A test kit: jobs in memory, a manual clock, seeded random numbers. A retry sequence of hours runs in milliseconds,
//! the same way every time.
//!
//! ```
//! use windlass::testing::TestKit;
//! # use windlass::{Attempt, Failure, JobKind, State};
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Flaky;
//! # impl JobKind for Flaky { const KIND: &'static str = "flaky"; }
//! # async fn flaky(_: Flaky, attempt: Attempt) -> Result<(), Failure> {
//! #     if attempt.retry() < 2 { Err(Failure::new("not yet")) } else { Ok(()) }
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let kit = TestKit::new().handle(flaky);
//! let id = kit.windlass().enqueue(Flaky).retry("stepped").await?;
//! kit.run_until_idle().await;                       // jumps through the backoffs: 30s, then 60s
//! assert_eq!(kit.job(id).await.state, State::Succeeded);
//! assert_eq!(kit.elapsed(), windlass::Millis::from_secs(90));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod faulty;
mod plan;

pub use crate::leases::store_contact::StoreContact;
pub use faulty::{Fault, FaultyStore};
pub use plan::{FaultPlan, FaultRates};

use crate::alert::Alerts;
use crate::attempt::{Attempt, Shared, States, Ticket};
use crate::client::windlass::Windlass;
use crate::clock::Clock;
use crate::event::{Ended, Event, EventKind};
use crate::executor::handlers::{Handlers, JobKind};
use crate::executor::middleware::Next;
use crate::executor::{Execute, Executed};
use crate::handler_error::BoxError;
use crate::job::{ClaimedJob, Job, LeaseId};
use crate::leases::transition::{Trace, commit_by};
use crate::random::Random;
use crate::store::memory::MemoryStore;
use crate::store::{
    Claim, Claimed, Commit, Committed, JobFilter, Leases, Options, Order, Page, Scope, Share, Store, WorkerId,
};
use crate::upkeep::Keeper;
use crate::worker::{panic, run_attempt};
use serde::Serialize;
use std::any::Any;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt as Line, Executor, Failure, JobId, Millis, Outcome, Timestamp};

/// When a kit's time begins: noon of the first day of 2026, UTC.
pub const START: Timestamp = Timestamp::from_millis(1_767_268_800_000);
/// The most attempts of one [`TestKit::run_until_idle`]. A job that never ends is a mistake in the test.
const MAX_ATTEMPTS: usize = 100_000;
/// The most jobs in a list.
const MAX_JOBS: u32 = 10_000;

/// An event of a first attempt in the queue `default`, for tests of what observes events.
#[must_use]
pub fn event(job: JobId, tenant: Tenant, kind: Kind, event_kind: EventKind, at: Timestamp) -> Event {
    let queue = QueueName::default();
    Event {
        at,
        job,
        tenant,
        queue,
        kind,
        attempt: 1,
        retry: 0,
        max_attempts: 4,
        schedule: None,
        due_at: at,
        event_kind,
    }
}

/// A store in memory with a worker that runs only on request.
pub struct TestKit {
    windlass: Windlass,
    handlers: Handlers,
    http: Option<Arc<dyn Execute>>,
    states: States,
    alerts: Option<Alerts>,
    shared: OnceLock<Arc<Shared>>,
}

impl Default for TestKit {
    fn default() -> Self {
        Self::new()
    }
}

impl TestKit {
    /// A kit in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// The same with another seed: other delays, the same in every run.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let options = Options { clock: Clock::manual(START), random: Random::seeded(seed), ..Options::default() };
        let random = options.random.clone();
        Self::with_store(MemoryStore::new(options), random)
    }

    /// A kit over another store, whose clock must be a manual one.
    #[must_use]
    pub fn with_store(store: Arc<dyn Store>, random: Random) -> Self {
        Self::over(Windlass::with_random(store, random))
    }

    /// A kit over a client that was opened with a manual clock: `Windlass::builder(url).clock(Clock::manual(START))`.
    /// With a Postgres URL it tests code that enqueues and completes in Postgres transactions.
    #[must_use]
    pub fn over(windlass: Windlass) -> Self {
        panic::watch();
        Self {
            windlass,
            handlers: Handlers::default(),
            http: None,
            states: States::default(),
            alerts: None,
            shared: OnceLock::new(),
        }
    }

    /// A kit over a SQLite file, which is created if it does not exist. For code that enqueues and completes jobs in
    /// its own transactions. Time is virtual here too.
    ///
    /// ```
    /// use windlass::rusqlite::{Connection, TransactionBehavior};
    /// use windlass::testing::TestKit;
    /// use windlass::{Attempt, BoxError, JobKind, State};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, JobKind)]
    /// struct Ship { order: i64, file: std::path::PathBuf }
    ///
    /// // The code under test: the effect and the job's success are one commit.
    /// fn ship(job: Ship, attempt: Attempt) -> Result<(), BoxError> {
    ///     let mut connection = Connection::open(&job.file)?;
    ///     let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    ///     transaction.execute("UPDATE orders SET shipped = shipped + 1 WHERE id = ?1", [job.order])?;
    ///     attempt.complete_in(&transaction)?;
    ///     transaction.commit()?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let home = tempfile::tempdir()?;
    /// let file = home.path().join("shop.db");
    /// let kit = TestKit::sqlite(&file).await.handle_blocking(ship);
    /// let mut connection = Connection::open(&file)?;
    /// connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, shipped INTEGER);")?;
    /// connection.execute("INSERT INTO orders VALUES (1, 0)", [])?;
    ///
    /// let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    /// let job = Ship { order: 1, file: file.clone() };
    /// let id = kit.windlass().enqueue(job).enqueue_in(&transaction)?;
    /// transaction.commit()?;
    ///
    /// kit.run_until_idle().await;
    /// assert_eq!(kit.job(id).await.state, State::Succeeded);
    /// let shipped: i64 = connection.query_row("SELECT shipped FROM orders", [], |row| row.get(0))?;
    /// assert_eq!(shipped, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the file cannot be opened, so that the test fails.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(file: impl AsRef<std::path::Path>) -> Self {
        let builder = Windlass::builder(format!("sqlite:{}", file.as_ref().display()));
        let opened = builder.clock(Clock::manual(START)).random(Random::seeded(0)).open().await;
        Self::over(opened.expect("the SQLite file can be opened"))
    }

    /// As `Worker::handle`.
    #[must_use]
    pub fn handle<J, F, Fut, R, E>(mut self, handler: F) -> Self
    where
        J: JobKind,
        F: Fn(J, Attempt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        self.handlers.add(handler);
        self
    }

    /// As `Worker::handle_blocking`.
    #[must_use]
    pub fn handle_blocking<J, F, R, E>(mut self, handler: F) -> Self
    where
        J: JobKind,
        F: Fn(J, Attempt) -> Result<R, E> + Send + Sync + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        self.handlers.add_blocking(handler);
        self
    }

    /// As `Worker::wrap`.
    #[must_use]
    pub fn wrap<F, Fut>(mut self, middleware: F) -> Self
    where
        F: Fn(Attempt, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Executed> + Send + 'static,
    {
        self.handlers.wrap(middleware);
        self
    }

    /// As `Worker::rewrite_failures`.
    #[must_use]
    pub fn rewrite_failures<J: JobKind>(
        mut self,
        rewrite: impl Fn(Failure, &Attempt) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.handlers.add_rewrite::<J>(rewrite);
        self
    }

    /// As `Worker::http`, with an executor that returns what the test chose.
    #[must_use]
    pub fn http(mut self, executor: impl Execute) -> Self {
        self.http = Some(Arc::new(executor));
        self
    }

    /// As `Worker::alerts`; the rules are judged whenever time passes.
    #[must_use]
    pub fn alerts(mut self, alerts: Alerts) -> Self {
        self.alerts = Some(alerts);
        self
    }

    /// As `Worker::state`.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// The client whose jobs it runs.
    #[must_use]
    pub fn windlass(&self) -> &Windlass {
        &self.windlass
    }

    /// The clock, which the kit moves.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.windlass.clock()
    }

    /// Time passed since the kit was made.
    #[must_use]
    pub fn elapsed(&self) -> Millis {
        self.clock().monotonic()
    }

    /// Lets time pass. Schedules fire and jobs expire, but no job is run.
    pub async fn advance(&self, span: impl Into<Millis>) {
        self.clock().advance(span.into());
        self.upkeep().await;
    }

    /// Runs one due job after another until none is due, including jobs that fall due meanwhile. Returns the number of
    /// attempts.
    ///
    /// # Panics
    /// If the attempts do not end, or the store refuses a call, so that the test fails.
    pub async fn run_due(&self) -> usize {
        self.drain().await.0
    }

    /// The number of attempts, and when the next job falls due.
    async fn drain(&self) -> (usize, Option<Timestamp>) {
        for count in 0..MAX_ATTEMPTS {
            let claimed = self.claim_one().await;
            let Some(job) = claimed.jobs.into_iter().next() else { return (count, claimed.next_due) };
            self.run_one(job).await;
        }
        panic!("jobs are due again and again: {MAX_ATTEMPTS} attempts without an end");
    }

    /// Runs due jobs and skips every backoff and delay until no job is left that will fall due. It does not skip to the
    /// next firing of a schedule, because schedules never end. Returns the number of attempts.
    pub async fn run_until_idle(&self) -> usize {
        let mut attempts = 0;
        loop {
            let (count, next_due) = self.drain().await;
            attempts += count;
            let Some(next) = next_due else { return attempts };
            assert!(attempts < MAX_ATTEMPTS, "{MAX_ATTEMPTS} attempts without an end");
            self.advance(next.since(self.clock().now())).await;
        }
    }

    /// The job with this id.
    ///
    /// # Panics
    /// If there is none.
    pub async fn job(&self, id: JobId) -> Job {
        self.windlass.jobs().get(id).await.expect("the store answers").expect("there is a job with this id")
    }

    /// A job's attempts, oldest first.
    ///
    /// # Panics
    /// If the store refuses.
    pub async fn history(&self, id: JobId) -> Vec<Line> {
        self.windlass.jobs().history(id).await.expect("the store answers")
    }

    /// All jobs of `J`'s kind, live and finished, oldest first, with their payloads.
    ///
    /// # Panics
    /// If a payload is not a `J`.
    pub async fn jobs_of<J: JobKind>(&self) -> Vec<(Job, J)> {
        let kind = windlass_core::job::Kind::new(J::KIND).expect("a kind is a name");
        let filter = JobFilter { kind: Some(kind), ..JobFilter::default() };
        let page = Page { after: None, limit: MAX_JOBS, order: Order::OldestFirst };
        let jobs = self.windlass.store().jobs(&Scope::All, &filter, page).await.expect("the store answers");
        let decode = |job: Job| {
            let payload = serde_json::from_str(&job.payload).expect("the payload is of this kind");
            (job, payload)
        };
        jobs.into_iter().map(decode).collect()
    }

    /// Asserts that a job of `J`'s kind was enqueued for which `is_it` returns true; returns it.
    ///
    /// # Panics
    /// If none was.
    pub async fn assert_enqueued<J: JobKind>(&self, is_it: impl Fn(&Job, &J) -> bool) -> Job {
        let jobs = self.jobs_of::<J>().await;
        let count = jobs.len();
        let found = jobs.into_iter().find(|(job, payload)| is_it(job, payload)).map(|(job, _)| job);
        found.unwrap_or_else(|| panic!("none of the {count} enqueued jobs of kind {} is the one expected", J::KIND))
    }

    /// Asserts that no job of `J`'s kind was enqueued.
    ///
    /// # Panics
    /// If one was.
    pub async fn assert_none_enqueued<J: JobKind>(&self) {
        let count = self.jobs_of::<J>().await.len();
        assert_eq!(count, 0, "{count} jobs of kind {} were enqueued", J::KIND);
    }

    async fn upkeep(&self) {
        Keeper::of(&self.windlass).alerts(self.alerts.clone()).all().await;
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.get_or_init(|| {
            let (windlass, state) = (self.windlass.clone(), self.states.clone());
            Arc::new(Shared { windlass, worker: "test-kit".into(), installation: "test".into(), state })
        })
    }

    async fn claim_one(&self) -> Claimed {
        let store = self.windlass.store();
        let queues = store.queues().await.expect("the store answers");
        let served = queues.iter().filter(|queue| queue.executor == Executor::Worker || self.http.is_some());
        let claim = Claim {
            worker: WorkerId::new("test-kit"),
            leases: Leases::Shared(LeaseId::draw(self.windlass.random())),
            lease_for: Millis::from_secs(30),
            shares: served.map(|queue| Share { queue: queue.id, slots: 1, ahead: 0 }).collect(),
            limit: 1,
            suspects: 1,
            kinds: None,
        };
        store.claim(claim).await.expect("the store answers")
    }

    async fn run_one(&self, job: ClaimedJob) {
        let run: &dyn Execute = match (job.executor, &self.http) {
            (Executor::Http, Some(http)) => &**http,
            (Executor::Http | Executor::Worker, _) => &self.handlers,
        };
        let ticket = Ticket::new(job, self.shared().clone());
        let started_at = self.clock().now();
        ticket.start(started_at);
        let ran = run_attempt(run, &ticket).await;
        let worker = "test-kit".to_owned();
        let note = ticket.take_note().or(ran.note);
        let trace = Trace { started_at, finished_at: self.clock().now(), worker, note, result: ran.result };
        let roll = self.windlass.random().roll();
        let catalogue = self.windlass.catalogue().await.expect("the store answers");
        let rules = catalogue.rules_of(&ticket.job.tenant, &ticket.job.queue, &ticket.job.kind);
        let commit = commit_by(&ticket.job, &ran.outcome, rules, trace.clone(), roll);
        let store = self.windlass.store();
        let committed = store.commit(vec![commit.clone()], vec![ticket.lease()]).await.expect("the store answers");
        if committed != [Committed::CancelRequested] {
            return self.trace(&ticket, &commit);
        }
        let asked = ticket.job.with_cancel_requested();
        let commit = commit_by(&asked, &ran.outcome, rules, trace, roll);
        store.commit(vec![commit.clone()], vec![ticket.lease()]).await.expect("the store answers");
        self.trace(&ticket, &commit);
    }

    /// Hands over the span of an attempt, as a worker does.
    fn trace(&self, ticket: &Ticket, commit: &Commit) {
        let Some(tracer) = self.windlass.tracer() else { return };
        let ended = Ended {
            job: &ticket.job,
            transition: commit.transition,
            error_class: commit.error_class.as_deref(),
            error: commit.error.as_deref(),
            started_at: commit.started_at,
            finished_at: commit.finished_at,
            next_firing: None,
            lease: Some(commit.lease),
        };
        tracer.attempt_ended(&ended, commit.lease, &commit.worker);
    }
}

impl std::fmt::Debug for TestKit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestKit")
            .field("handlers", &self.handlers)
            .field("now", &self.clock().now())
            .finish_non_exhaustive()
    }
}
