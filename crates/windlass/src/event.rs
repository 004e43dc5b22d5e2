//! Events: what happened to jobs, for logs, metrics and whoever subscribes. One log line per transition, where it is
//! committed; never a payload.

use crate::job::Job;
use crate::store::Settled;
use std::sync::Arc;
use tokio::sync::broadcast;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{JobId, Millis, Next, Reason, State, Status, Timestamp, Transition};

/// How many events a slow subscriber may lag behind before it misses some.
pub const EVENT_BUFFER: usize = 4096;

/// Something that happened to a job.
#[derive(Debug, Clone)]
pub struct Event {
    pub at: Timestamp,
    pub job: JobId,
    pub tenant: Tenant,
    pub queue: QueueName,
    pub kind: Kind,
    /// The ledger's number of the attempt; 0 before the first.
    pub attempt: u32,
    /// Failures counted before this attempt: which retry it is.
    pub retry: u32,
    pub max_attempts: u32,
    pub schedule: Option<JobId>,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    /// Stored, or sent again by a person.
    Queued,
    /// An attempt started, this long after the job fell due.
    Started {
        waited: Millis,
    },
    Succeeded {
        elapsed: Millis,
    },
    /// An attempt failed and the policy chose another one.
    Retried {
        elapsed: Millis,
        delay: Millis,
        next_run_at: Timestamp,
        error_class: String,
    },
    GaveUp {
        elapsed: Millis,
        reason: Reason,
        error_class: Option<String>,
    },
    Cancelled,
    /// Waits without a failure: snoozed by its handler, or released by a stopping worker.
    Postponed {
        next_run_at: Timestamp,
    },
}

impl What {
    /// The state the event leaves its job in.
    #[must_use]
    pub const fn state(&self) -> State {
        match self {
            Self::Queued | Self::Postponed { .. } => State::Queued,
            Self::Started { .. } => State::Running,
            Self::Succeeded { .. } => State::Succeeded,
            Self::Retried { .. } => State::Retrying,
            Self::GaveUp { .. } => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}

/// The events of this process.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(EVENT_BUFFER))
    }
}

impl Events {
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends what `make` makes, if anyone listens.
    pub fn emit(&self, make: impl FnOnce() -> Event) {
        if self.has_listeners() {
            // Whoever listened a moment ago may be gone: nobody misses this event.
            let _ = self.0.send(make());
        }
    }
}

/// Whether each start of an attempt and each success gets a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttemptLog {
    #[default]
    On,
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
}

/// Tells logs and subscribers.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub events: Events,
    pub worker: Arc<str>,
    pub attempts: AttemptLog,
}

impl Reporter {
    pub(crate) fn started(&self, job: &Job, now: Timestamp) {
        if self.attempts == AttemptLog::On {
            let (id, kind, number, max) = (job.id, &job.kind, job.failures + 1, job.policy.max_attempts());
            tracing::info!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %kind, attempt = job.attempt,
                max_attempts = max, worker = &*self.worker, "job {id} {kind}: attempt {number}/{max}");
        }
        self.events.emit(|| event(job, now, What::Started { waited: now.since(job.due_at) }));
    }

    pub(crate) fn ended(&self, ended: &Ended<'_>) {
        self.log(ended);
        self.events.emit(|| event(ended.job, ended.finished_at, what(ended)));
    }

    /// What the store's own upkeep did.
    pub(crate) fn settled(&self, settled: &Settled, now: Timestamp, next_firing: Option<Timestamp>) {
        let job = &settled.job;
        let started_at = job.claimed_at.unwrap_or(now);
        let (transition, error_class) = (settled.transition, settled.error_class.as_deref());
        self.ended(&Ended { job, transition, error_class, error: None, started_at, finished_at: now, next_firing });
    }

    fn log(&self, ended: &Ended<'_>) {
        let (job, transition) = (ended.job, &ended.transition);
        let (id, max, of) = (job.id, job.policy.max_attempts(), job.policy.max_retries);
        let elapsed_ms = ended.finished_at.since(ended.started_at).get();
        match transition.next {
            Next::Succeeded if self.attempts == AttemptLog::Off => {}
            Next::Succeeded => tracing::info!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                "job {id} succeeded"),
            Next::Failed(reason) => {
                let firing = ended.next_firing.map_or_else(String::new, |at| format!(", next firing {at}"));
                tracing::error!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %job.kind,
                    attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                    error_class = ended.error_class, error = ended.error, verdict = %reason,
                    schedule = job.schedule.map(|s| s.0),
                    "job {id} failed after {} retries ({reason}), archived{firing}", job.failures);
            }
            Next::Cancelled => tracing::info!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                "job {id} cancelled"),
            Next::Wait { due_at, delay, .. } if transition.status == Status::Failed => {
                let retry = transition.failures;
                tracing::warn!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue, kind = %job.kind,
                    attempt = job.attempt, max_attempts = max, worker = &*self.worker, elapsed_ms,
                    next_run_at = %due_at, delay_ms = delay.get(), error_class = ended.error_class,
                    error = ended.error, "job {id} failed, retry {retry}/{of} in {delay} (at {due_at})");
            }
            Next::Wait { due_at, .. } => tracing::debug!(tenant_id = %job.tenant, job_id = id.0, queue = %job.queue,
                kind = %job.kind, attempt = job.attempt, next_run_at = %due_at, verdict = %transition.status,
                "job {id} postponed to {due_at}"),
        }
    }
}

pub(crate) fn event(job: &Job, at: Timestamp, what: What) -> Event {
    Event {
        at,
        job: job.id,
        tenant: job.tenant.clone(),
        queue: job.queue.clone(),
        kind: job.kind.clone(),
        attempt: job.attempt,
        retry: job.failures,
        max_attempts: job.policy.max_attempts(),
        schedule: job.schedule,
        what,
    }
}

fn what(ended: &Ended<'_>) -> What {
    let elapsed = ended.finished_at.since(ended.started_at);
    let error_class = || ended.error_class.map(str::to_owned);
    match ended.transition.next {
        Next::Succeeded => What::Succeeded { elapsed },
        Next::Failed(reason) => What::GaveUp { elapsed, reason, error_class: error_class() },
        Next::Cancelled => What::Cancelled,
        Next::Wait { due_at, delay, .. } if ended.transition.status == Status::Failed => {
            let error_class = error_class().unwrap_or_default();
            What::Retried { elapsed, delay, next_run_at: due_at, error_class }
        }
        Next::Wait { due_at, .. } => What::Postponed { next_run_at: due_at },
    }
}
