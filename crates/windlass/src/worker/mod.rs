//! The worker: claims, executes and commits, in one process, under one id. Its three steps are `fetch`, `execute` and
//! `commit`; `renew` keeps its leases alive.

mod alternate;
mod backlog;
mod commit;
mod dispatch;
mod execute;
mod fetch;
mod identity;
mod pace;
pub(crate) mod panic;
mod renew;
mod run;
pub(crate) mod shutdown;
mod subscription;

pub(crate) use crate::leases::held_leases::HeldLeases;
#[cfg(feature = "testing")]
pub(crate) use execute::run_attempt;

use crate::alert::Alerts;
use crate::attempt::{Attempt, States};
use crate::client::windlass::Windlass;
use crate::event::AttemptLog;
use crate::executor::handlers::{Handlers, JobKind};
use crate::executor::middleware::Next;
use crate::executor::{Execute, Executed};
use crate::handler_error::BoxError;
use crate::store::StoreError;
use serde::Serialize;
use shutdown::IntoShutdown;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use subscription::{Queues, Subscription};
use windlass_core::job::QueueName;
use windlass_core::{Executor, Failure, Millis, NameError, Outcome};

/// How long a lease lasts without renewal.
pub const DEFAULT_LEASE: Millis = Millis::from_secs(30);
/// How long attempts may go on after the worker was asked to stop.
pub const DEFAULT_GRACE: Millis = Millis::from_secs(25);
/// How often a worker looks for work without a wake-up.
pub const DEFAULT_POLL: Millis = Millis::from_secs(1);
/// Slots per queue of a worker that names no queue.
pub const DEFAULT_CONCURRENCY: u32 = 50;

/// Runs jobs. Configured by its methods, started by [`Worker::run`].
pub struct Worker {
    windlass: Windlass,
    handlers: Handlers,
    http: Option<Arc<dyn Execute>>,
    state: States,
    subscriptions: Vec<Subscription>,
    wrong_name: Option<NameError>,
    id: Option<String>,
    lease: Millis,
    grace: Millis,
    poll: Millis,
    attempt_log: AttemptLog,
    upkeep: Upkeep,
    alerts: Option<Alerts>,
}

/// Whether a worker also reaps, expires, fires schedules and prunes. Any node may do it; at least one must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Upkeep {
    /// This worker does the upkeep.
    #[default]
    Here,
    /// Another worker does the upkeep.
    Elsewhere,
}

/// Why a worker could not start or stopped early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A queue name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The worker serves queues of HTTP jobs, but has no HTTP executor.
    #[error("queues of the executor http need an HTTP executor; give one with `Worker::http`")]
    NoHttp,
    /// The store was unreachable while the worker stopped. These jobs are reaped when their leases run out.
    #[error("{0} outcomes could not be committed before the worker stopped")]
    Uncommitted(usize),
}

impl Worker {
    /// A worker for the jobs of `windlass`.
    #[must_use]
    pub fn new(windlass: &Windlass) -> Self {
        Self {
            windlass: windlass.clone(),
            handlers: Handlers::default(),
            http: None,
            state: States::default(),
            subscriptions: Vec::new(),
            wrong_name: None,
            id: None,
            lease: DEFAULT_LEASE,
            grace: DEFAULT_GRACE,
            poll: DEFAULT_POLL,
            attempt_log: AttemptLog::On,
            upkeep: Upkeep::Here,
            alerts: None,
        }
    }

    /// Runs jobs of `J`'s kind with an async function: `async fn(J, Attempt) -> Result<R, E>`. A result other than `()`
    /// is stored with the job. The error may be a [`Failure`], a [`HandlerError`](crate::HandlerError) (to snooze or
    /// cancel), or any `std::error::Error`: a retryable failure whose class is the error type's name. An
    /// `anyhow::Error` has the class `Error`, unless there is a [`Failure`] in it (feature `anyhow`).
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

    /// Like [`Worker::handle`], with a blocking function that runs on its own threads. A timeout cancels the attempt,
    /// but only the function itself can stop its work.
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

    /// Passes every failure of `J`'s kind, timeouts and panics included, to a function that may change it before the
    /// policy decides. Use it for custom retry logic.
    #[must_use]
    pub fn rewrite_failures<J: JobKind>(
        mut self,
        rewrite: impl Fn(Failure, &Attempt) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.handlers.add_rewrite::<J>(rewrite);
        self
    }

    /// Runs every attempt of the handlers inside `middleware`: for logs, traces, metrics, context. The first one added
    /// is the outermost. It sees panics as failures of the class `Panic`. A timeout drops it together with the handler.
    /// [`Worker::rewrite_failures`] and the retry policy see what it returns. Jobs of kinds without a handler and HTTP
    /// jobs do not pass through it.
    ///
    /// ```
    /// # use windlass::{Attempt, Failure, JobKind, Windlass, Worker};
    /// # #[derive(serde::Serialize, serde::Deserialize, JobKind)] struct Report;
    /// # async fn report(_: Report, _: Attempt) -> Result<(), Failure> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = Windlass::open("memory:").await?;
    /// let worker = Worker::new(&windlass).handle(report).wrap(|attempt, next| async move {
    ///     let id = attempt.id();
    ///     let executed = next.run(attempt).await;
    ///     println!("job {id}: {:?}", executed.outcome);
    ///     executed
    /// });
    /// # drop(worker);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn wrap<F, Fut>(mut self, middleware: F) -> Self
    where
        F: Fn(Attempt, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Executed> + Send + 'static,
    {
        self.handlers.wrap(middleware);
        self
    }

    /// Runs HTTP jobs with this executor.
    #[must_use]
    pub fn http(mut self, executor: impl Execute) -> Self {
        self.http = Some(Arc::new(executor));
        self
    }

    /// Gives handlers a value, which they read with `Attempt::state`.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.state.put(value);
        self
    }

    /// Serves the queue of this name, of all tenants, with this many jobs at a time.
    #[must_use]
    pub fn queue(mut self, name: &str, concurrency: u32) -> Self {
        match QueueName::new(name) {
            Ok(name) => self.subscription(Queues::Named(name), Executor::Worker, concurrency),
            Err(error) => self.wrong_name = Some(error),
        }
        self
    }

    /// Serves all queues of an executor that are not named otherwise, including queues created later, with this many
    /// jobs at a time in all.
    #[must_use]
    pub fn all_queues(mut self, executor: Executor, concurrency: u32) -> Self {
        self.subscription(Queues::Others, executor, concurrency);
        self
    }

    /// The worker's name in leases and the ledger. A process that restarts under the same id frees the jobs it held
    /// before.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How long a lease lasts without renewal. This is also how soon the jobs of a killed worker are recovered.
    #[must_use]
    pub fn lease(mut self, span: impl Into<Millis>) -> Self {
        self.lease = span.into();
        self
    }

    /// How long attempts may go on after the worker was asked to stop.
    #[must_use]
    pub fn grace(mut self, span: impl Into<Millis>) -> Self {
        self.grace = span.into();
        self
    }

    /// How often to look for work without a wake-up.
    #[must_use]
    pub fn poll(mut self, span: impl Into<Millis>) -> Self {
        self.poll = span.into();
        self
    }

    /// Whether each start of an attempt and each success gets a log line.
    #[must_use]
    pub fn attempt_log(mut self, log: AttemptLog) -> Self {
        self.attempt_log = log;
        self
    }

    /// Whether this worker also does the upkeep.
    #[must_use]
    pub fn upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    /// Judges these alert rules as part of the upkeep. Without this, the worker judges none.
    #[must_use]
    pub fn alerts(mut self, alerts: Alerts) -> Self {
        self.alerts = Some(alerts);
        self
    }

    /// Works until `shutdown` completes; then claims no more, lets attempts finish within the grace time, releases
    /// the rest, commits everything and returns. `shutdown` is any future, or a
    /// [`CancellationToken`](tokio_util::sync::CancellationToken):
    ///
    /// ```no_run
    /// # use windlass::{Windlass, Worker};
    /// # async fn example(windlass: Windlass) -> Result<(), windlass::WorkerError> {
    /// Worker::new(&windlass).run(tokio::signal::ctrl_c()).await?;
    ///
    /// let token = windlass::CancellationToken::new();
    /// Worker::new(&windlass).run(&token).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A queue name is not valid, or the store cannot be used at the start. Later failures of the store are retried.
    pub async fn run<Marker>(mut self, shutdown: impl IntoShutdown<Marker>) -> Result<(), WorkerError> {
        if self.subscriptions.is_empty() {
            self = self.kinds_queues();
        }
        run::run(self, shutdown.into_shutdown()).await
    }

    /// The queue `default` and those that the handlers' kinds name.
    fn kinds_queues(self) -> Self {
        let queues: Vec<&str> = self.handlers.queues().collect();
        let worker = self.queue(QueueName::default().as_str(), DEFAULT_CONCURRENCY);
        queues.into_iter().fold(worker, |worker, queue| worker.queue(queue, DEFAULT_CONCURRENCY))
    }

    fn subscription(&mut self, queues: Queues, executor: Executor, concurrency: u32) {
        self.subscriptions.retain(|subscription| (&subscription.queues, subscription.executor) != (&queues, executor));
        self.subscriptions.push(Subscription { queues, executor, concurrency: concurrency.max(1) });
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("handlers", &self.handlers)
            .field("queues", &self.subscriptions)
            .finish_non_exhaustive()
    }
}
