//! Events: what happened to jobs, for logs, metrics and subscribers. Each transition gets one log line where it is
//! committed, never with a payload.

use crate::job::{Job, LeaseId};
use crate::store::Transitioned;
use crate::telemetry::Telemetry;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::broadcast;
use windlass_core::failure::BAD_PAYLOAD;
use windlass_core::gate::WaitingFor;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, JobId, Millis, Next, Reason, State, Status, Timestamp, Transition};

/// How many events a slow subscriber may lag behind before it misses some.
pub const EVENT_BUFFER: usize = 4096;

/// Something that happened to a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// The job.
    pub job: JobId,
    /// Its owner.
    pub tenant: Tenant,
    /// Its queue.
    pub queue: QueueName,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// The ledger's number of the attempt; 0 before the first.
    pub attempt: u32,
    /// Failures counted before this attempt: which retry it is.
    pub retry: u32,
    /// The most attempts its policy allows.
    pub max_attempts: u32,
    /// The schedule it is a run of.
    pub schedule: Option<JobId>,
    /// When the job was due before the event.
    pub due_at: Timestamp,
    /// What happened.
    pub event_kind: EventKind,
}

/// What happened to a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventKind {
    /// Stored, or sent again by an operator.
    Queued,
    /// An attempt started, this long after the job fell due.
    Started {
        /// How long it was due before.
        waited: Millis,
    },
    /// An attempt succeeded.
    Succeeded {
        /// How long the attempt took.
        elapsed: Millis,
    },
    /// An attempt failed and the policy chose another one.
    Retried {
        /// How long the attempt took.
        elapsed: Millis,
        /// The backoff.
        delay: Millis,
        /// When the next attempt is due.
        next_run_at: Timestamp,
        /// The class of the error.
        error_class: String,
    },
    /// The job failed and is not retried.
    GaveUp {
        /// How long the attempt took.
        elapsed: Millis,
        /// Why.
        reason: Reason,
        /// The class of the error.
        error_class: Option<String>,
    },
    /// It was cancelled.
    Cancelled,
    /// It was due, but a limit, hold, circuit breaker or retry budget did not let it start yet. Reported by the process
    /// whose claim found this, and only while someone subscribes.
    Parked {
        /// What it waits for.
        waiting_for: WaitingFor,
        /// Until when, if that is known.
        until: Option<Timestamp>,
        /// Whether it waits for a retry.
        is_retry: bool,
    },
    /// Waits without a failure: snoozed by its handler, or released by a stopping worker.
    Postponed {
        /// When the next attempt is due.
        next_run_at: Timestamp,
    },
}

impl EventKind {
    /// The one word for it, as server-sent events and metrics say it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Started { .. } => "started",
            Self::Succeeded { .. } => "succeeded",
            Self::Retried { .. } => "retried",
            Self::GaveUp { .. } => "gave_up",
            Self::Cancelled => "cancelled",
            Self::Parked { .. } => "parked",
            Self::Postponed { .. } => "postponed",
        }
    }

    /// The state the event leaves its job in.
    #[must_use]
    pub const fn state(&self) -> State {
        match self {
            Self::Queued | Self::Postponed { .. } | Self::Parked { is_retry: false, .. } => State::Queued,
            Self::Started { .. } => State::Running,
            Self::Succeeded { .. } => State::Succeeded,
            Self::Retried { .. } | Self::Parked { is_retry: true, .. } => State::Retrying,
            Self::GaveUp { .. } => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}

impl Event {
    /// What the job waits for after the event, and until when, if that is known. `None` if it does not wait, or may
    /// start at once.
    #[must_use]
    pub fn waiting(&self) -> Option<(WaitingFor, Option<Timestamp>)> {
        let until = |due_at: Timestamp| (due_at > self.at).then_some((WaitingFor::RunAt, Some(due_at)));
        match &self.event_kind {
            EventKind::Queued => until(self.due_at),
            EventKind::Postponed { next_run_at } => until(*next_run_at),
            EventKind::Retried { next_run_at, .. } => Some((WaitingFor::Retry, Some(*next_run_at))),
            EventKind::Parked { waiting_for, until, .. } => Some((*waiting_for, *until)),
            EventKind::Started { .. }
            | EventKind::Succeeded { .. }
            | EventKind::GaveUp { .. }
            | EventKind::Cancelled => None,
        }
    }
}

/// Called for every attempt that starts and every change that ends or postpones one, in the task that committed it.
/// Unlike a slow subscriber, an observer misses no event. [`EventKind::Queued`] is left out, because tallies count it,
/// and so is [`EventKind::Parked`]. Must be quick and must not block.
pub trait Observe: Send + Sync {
    /// Called for each event, where it is committed.
    fn observe(&self, event: &Event);
}

/// The events of this process.
#[derive(Clone)]
pub struct Events {
    subscribers: broadcast::Sender<Event>,
    observers: Arc<RwLock<Vec<Arc<dyn Observe>>>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { subscribers: broadcast::Sender::new(EVENT_BUFFER), observers: Arc::default() }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("subscribers", &self.subscribers.receiver_count()).finish_non_exhaustive()
    }
}

impl Events {
    /// Events from now on. Slow readers miss the oldest.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.subscribers.subscribe()
    }

    /// Adds an observer, which cannot be removed.
    pub fn observe(&self, observer: Arc<dyn Observe>) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Whether there are subscribers.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.subscribers.receiver_count() > 0
    }

    /// Whether there are subscribers or observers.
    #[must_use]
    pub fn has_audience(&self) -> bool {
        self.has_listeners() || !self.observers.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Sends the event that `make` creates to observers and subscribers, if there are any.
    pub fn emit(&self, make: impl FnOnce() -> Event) {
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        if observers.is_empty() && !self.has_listeners() {
            return;
        }
        let event = make();
        if !matches!(event.event_kind, EventKind::Queued | EventKind::Parked { .. }) {
            observers.iter().for_each(|observer| observer.observe(&event));
        }
        // The last subscriber may just have gone, so a failed send is ignored.
        let _ = self.subscribers.send(event);
    }
}

/// The log target of the lines that [`AttemptLog`] controls, so that a log filter can disable them too.
pub const ATTEMPT_TARGET: &str = "windlass::attempt";

/// Whether each start of an attempt and each success gets a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttemptLog {
    /// Each start and each success gets a line.
    #[default]
    On,
    /// They get none.
    Off,
}

/// How an attempt ended, as it was committed.
#[derive(Debug, Clone)]
pub(crate) struct Ended<'a> {
    pub job: &'a Job,
    pub transition: Transition,
    pub error_class: Option<&'a str>,
    pub error: Option<&'a str>,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    /// The next firing of the schedule this is a run of, if it gave up.
    pub next_firing: Option<Timestamp>,
    /// The lease of the attempt; none if nothing was started.
    pub lease: Option<LeaseId>,
}

/// Reports to logs and subscribers.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub events: Events,
    pub telemetry: Telemetry,
    pub worker: Arc<str>,
    pub attempts: AttemptLog,
}

impl Reporter {
    pub(crate) fn started(&self, job: &Job, now: Timestamp) {
        if self.attempts == AttemptLog::On {
            let (id, kind, number, max) = (job.id, &job.kind, job.failures + 1, job.max_attempts());
            tracing::info!(target: ATTEMPT_TARGET, tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %kind,
                attempt = job.attempt, max_attempts = max, worker = &*self.worker, parent_id = parent(job), schedule_id = schedule(job),
                "job {id} {kind}: attempt {number}/{max}");
        }
        self.events.emit(|| event(job, now, EventKind::Started { waited: now.since(job.due_at) }));
    }

    pub(crate) fn ended(&self, ended: &Ended<'_>) {
        self.log(ended);
        if let (Some(tracer), Some(lease)) = (self.telemetry.tracer(), ended.lease) {
            tracer.attempt_ended(ended, lease, &self.worker);
        }
        self.events.emit(|| event(ended.job, ended.finished_at, what(ended)));
    }

    /// Reports a transition made by the store's own upkeep.
    pub(crate) fn transitioned(&self, transitioned: &Transitioned, now: Timestamp, next_firing: Option<Timestamp>) {
        let job = &transitioned.job;
        let started_at = job.claimed_at.unwrap_or(now);
        let (transition, error_class) = (transitioned.transition, transitioned.error_class.as_deref());
        let lease = transitioned.lease;
        self.ended(&Ended {
            job,
            transition,
            error_class,
            error: None,
            started_at,
            finished_at: now,
            next_firing,
            lease,
        });
    }

    fn log(&self, ended: &Ended<'_>) {
        let (job, transition) = (ended.job, &ended.transition);
        let (id, max, of) = (job.id, job.max_attempts(), job.policy.max_retries);
        let elapsed_ms = ended.finished_at.since(ended.started_at).get();
        let error = ended.error.and_then(|error| loggable(job, ended.error_class, error));
        let error = error.as_deref();
        match transition.next {
            Next::Succeeded if self.attempts == AttemptLog::Off => {}
            Next::Succeeded => {
                tracing::info!(target: ATTEMPT_TARGET, tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                parent_id = parent(job), schedule_id = schedule(job), "job {id} succeeded");
            }
            Next::Failed(reason) => {
                let firing = ended.next_firing.map_or_else(String::new, |at| format!(", next firing {at}"));
                tracing::error!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %job.kind,
                    attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                    error_class = ended.error_class, error, verdict = %reason,
                    parent_id = parent(job), schedule_id = schedule(job),
                    "job {id} failed after {} {} ({reason}), archived{firing}", job.failures,
                    if job.failures == 1 { "retry" } else { "retries" });
            }
            Next::Cancelled => tracing::info!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                parent_id = parent(job), schedule_id = schedule(job), "job {id} cancelled"),
            Next::Wait { due_at, delay, .. } if transition.status == Status::Failed => {
                let retry = transition.failures;
                tracing::warn!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %job.kind,
                    attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                    next_run_at = %due_at, delay_ms = delay.get(), error_class = ended.error_class,
                    error, parent_id = parent(job), schedule_id = schedule(job),
                    "job {id} failed, retry {retry}/{of} in {delay} (at {due_at})");
            }
            Next::Wait { due_at, .. } => tracing::debug!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, next_run_at = %due_at, verdict = %transition.status,
                parent_id = parent(job), schedule_id = schedule(job),
                "job {id} postponed to {due_at}"),
        }
    }
}

/// The job that a delivery reports on.
fn parent(job: &Job) -> Option<i64> {
    job.parent.map(|id| id.0)
}

/// The schedule that a job is a run of.
fn schedule(job: &Job) -> Option<i64> {
    job.schedule.map(|id| id.0)
}

/// Longest failure message in a log line or span. The ledger has the full text.
pub(crate) const LOGGED_ERROR: usize = 300;

/// The part of a failure message that may be logged or traced. A receiver's response is left out, because it may echo
/// our request. So is the message about an unreadable payload. Payloads and secrets stay out of logs and traces.
pub(crate) fn loggable<'a>(job: &Job, class: Option<&str>, error: &'a str) -> Option<Cow<'a, str>> {
    let reported = match (job.executor, class) {
        (_, Some(BAD_PAYLOAD)) => return None,
        (Executor::Http, _) if error.starts_with("HTTP ") => error.split_once(':').map_or(error, |(status, _)| status),
        (Executor::Http | Executor::Worker, _) => error,
    };
    Some(cut(reported, LOGGED_ERROR))
}

/// The text, cut to this many characters.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

pub(crate) fn event(job: &Job, at: Timestamp, what: EventKind) -> Event {
    Event {
        at,
        job: job.id,
        tenant: job.tenant.clone(),
        queue: job.queue.clone(),
        kind: job.kind.clone(),
        attempt: job.attempt,
        retry: job.failures,
        max_attempts: job.max_attempts(),
        schedule: job.schedule,
        due_at: job.due_at,
        event_kind: what,
    }
}

fn what(ended: &Ended<'_>) -> EventKind {
    let elapsed = ended.finished_at.since(ended.started_at);
    let error_class = || ended.error_class.map(str::to_owned);
    match ended.transition.next {
        Next::Succeeded => EventKind::Succeeded { elapsed },
        Next::Failed(reason) => EventKind::GaveUp { elapsed, reason, error_class: error_class() },
        Next::Cancelled => EventKind::Cancelled,
        Next::Wait { due_at, delay, .. } if ended.transition.status == Status::Failed => {
            let error_class = error_class().unwrap_or_default();
            EventKind::Retried { elapsed, delay, next_run_at: due_at, error_class }
        }
        Next::Wait { due_at, .. } => EventKind::Postponed { next_run_at: due_at },
    }
}
