//! The attempt as its handler sees it: its identity, its deadline, and whether to stop.

use crate::client::windlass::Windlass;
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;
use windlass_core::{JobId, Millis, Timestamp};

/// Context of a running attempt. Cheap to clone.
///
/// ```
/// use windlass::{Attempt, BoxError};
///
/// async fn export(rows: Vec<String>, attempt: Attempt) -> Result<(), BoxError> {
///     for row in &rows {
///         // A cancelled job, a lost lease and a stopping worker all end here.
///         if attempt.is_cancelled() {
///             return Err("stopped".into());
///         }
///         println!("attempt {}: {row}", attempt.number());
///     }
///     attempt.note(format!("{} rows", rows.len()));
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Attempt(pub(crate) Arc<Ticket>);

/// A claimed job and what this process knows about its attempt.
pub(crate) struct Ticket {
    pub job: ClaimedJob,
    /// See [`Ticket::stop`].
    stop: OnceLock<CancellationToken>,
    /// A cancel of the job was requested while it ran.
    pub cancel_requested: AtomicBool,
    note: Mutex<Option<String>>,
    started_at: Mutex<Option<Timestamp>>,
    shared: Arc<Shared>,
}

/// What all attempts of one worker share.
pub(crate) struct Shared {
    pub windlass: Windlass,
    pub worker: Arc<str>,
    pub installation: Arc<str>,
    pub state: States,
}

/// Values of the application, one per type.
#[derive(Default, Clone)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }
}

impl Ticket {
    pub(crate) fn new(job: ClaimedJob, shared: Arc<Shared>) -> Arc<Self> {
        let cancel_requested = AtomicBool::new(job.cancel_requested);
        let (note, started_at) = (Mutex::default(), Mutex::default());
        Arc::new(Self { job, stop: OnceLock::new(), cancel_requested, note, started_at, shared })
    }

    /// Cancelled when the handler should stop: a cancel was requested, the lease was lost, or the worker stops. Created
    /// on first use, because most handlers end before anyone asks.
    pub(crate) fn stop(&self) -> &CancellationToken {
        self.stop.get_or_init(CancellationToken::new)
    }

    /// Records that a cancel was requested, for the decision, and asks the handler to stop.
    pub(crate) fn request_cancel(&self) {
        self.cancel_requested.store(true, Ordering::Release);
        self.stop().cancel();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.windlass.clock().now()
    }

    pub(crate) fn lease(&self) -> LeaseId {
        self.job.lease
    }

    pub(crate) fn start(&self, now: Timestamp) {
        *lock(&self.started_at) = Some(now);
    }

    pub(crate) fn started_at(&self) -> Option<Timestamp> {
        *lock(&self.started_at)
    }

    pub(crate) fn take_note(&self) -> Option<String> {
        lock(&self.note).take()
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn read_note(&self) -> Option<String> {
        lock(&self.note).clone()
    }
}

impl Attempt {
    /// The job as it was claimed.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.0.job
    }

    /// The job's id.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.0.job.id
    }

    /// The ledger's number of this attempt, from 1; grows with every claim.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.job.attempt
    }

    /// Which retry this is: 0 for the first attempt, up to [`Attempt::max_retries`].
    #[must_use]
    pub fn retry(&self) -> u32 {
        self.0.job.failures
    }

    /// How many retries its policy allows.
    #[must_use]
    pub fn max_retries(&self) -> u32 {
        self.0.job.policy.max_retries
    }

    /// Whether a failure now would be the last one.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.retry() >= self.max_retries()
    }

    /// The key that is the same for every attempt of this job. Pass it to any system where the effect must not happen
    /// twice.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.0.job.stable_key(self.installation())
    }

    #[cfg(feature = "http")]
    pub(crate) fn lease(&self) -> LeaseId {
        self.0.lease()
    }

    /// The id of the installation that the job belongs to.
    #[must_use]
    pub(crate) fn installation(&self) -> &str {
        &self.0.shared.installation
    }

    /// The W3C `traceparent` to pass on: of this attempt, if attempts are traced, or of the request that enqueued the
    /// job. For calls that the handler makes, and for jobs that it enqueues.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        let tracer = self.windlass().tracer();
        let own = tracer.map(|tracer| tracer.traceparent_of(&self.0.job));
        own.or_else(|| self.0.job.traceparent().map(str::to_owned))
    }

    /// When the attempt times out, if it has a timeout.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let timeout = self.0.job.timeout?;
        Some(self.started_at() + timeout)
    }

    /// When the attempt started.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at().unwrap_or_else(|| self.clock().now())
    }

    /// The name of the worker that runs it.
    #[must_use]
    pub fn worker(&self) -> &str {
        &self.0.shared.worker
    }

    /// The store's clock. Tests can move it, unlike the runtime's timer.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.0.shared.windlass.clock()
    }

    /// The job's origin, for jobs that enqueue others.
    #[must_use]
    pub fn windlass(&self) -> &Windlass {
        &self.0.shared.windlass
    }

    /// Waits for `span` on the store's clock.
    pub async fn sleep(&self, span: impl Into<Millis>) {
        self.clock().sleep(span.into()).await;
    }

    /// Cancelled when the attempt should stop: its job's cancel was requested, its lease was lost, or its worker stops
    /// and the grace time is over. What the handler then returns is recorded if the attempt still counts.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.stop()
    }

    /// Waits until the attempt should stop.
    pub async fn cancelled(&self) {
        self.0.stop().cancelled().await;
    }

    /// Whether the attempt should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.get().is_some_and(CancellationToken::is_cancelled)
    }

    /// Stores a text with the attempt, for operators. The last one counts.
    pub fn note(&self, text: impl Into<String>) {
        *lock(&self.0.note) = Some(text.into());
    }

    /// A value given to the worker with `Worker::state`.
    ///
    /// # Panics
    /// If there is no value of this type. This is a mistake in the setup, which fails the attempt with class `Panic`.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(&self) -> Arc<T> {
        self.try_state().unwrap_or_else(|| panic!("Worker::state was given no {}", std::any::type_name::<T>()))
    }

    /// The same, or `None`.
    #[must_use]
    pub fn try_state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.0.shared.state.0.get(&TypeId::of::<T>())?.clone();
        value.downcast().ok()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({}, attempt {})", self.job.id, self.job.attempt)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("id", &self.id()).field("number", &self.number()).finish_non_exhaustive()
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
