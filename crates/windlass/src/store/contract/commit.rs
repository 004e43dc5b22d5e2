//! Committing: transitions, fenced by attempt and lease.

use crate::job::{ClaimedJob, Job, LeaseId, NewJob, Payload, QueueId};
use std::sync::Arc;
use windlass_core::gate::{Ended, HoldOrigin};
use windlass_core::job::Kind;
use windlass_core::{Delivery, Effect, JobId, Millis, Next, Timestamp, Transition};

/// Why a job is discarded that an error rule discards.
pub(crate) const DISCARDED_BY_RULE: &str = "error rule";

/// One transition to apply, if the attempt still holds.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The job.
    pub job: JobId,
    /// With the lease, the fence.
    pub attempt: u32,
    /// The lease it is held under.
    pub lease: LeaseId,
    /// Its queue.
    pub queue: QueueId,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// How often its effects may happen.
    pub delivery: Delivery,
    /// The schedule it is a run of.
    pub schedule: Option<JobId>,
    /// What the attempt changes.
    pub transition: Transition,
    /// Failures counted before this attempt; the ledger's `retry`.
    pub retry: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How long the job had waited beyond its due time when it was claimed.
    pub due_at: Timestamp,
    /// The worker's id.
    pub worker: String,
    /// The class of the error.
    pub error_class: Option<String>,
    /// The message of the error.
    pub error: Option<String>,
    /// What the handler noted.
    pub note: Option<String>,
    /// The stack trace of the error.
    pub trace: Option<String>,
    /// How often the job had been replayed.
    pub replay: u32,
    /// The JSON text that the handler returned.
    pub result: Option<Payload>,
    /// Jobs that exist only if this commit happened: the webhook delivery.
    pub follow_ups: Vec<NewJob>,
    /// How the attempt ended, for the gates it had passed.
    pub ended: Ended,
    /// A hold that the attempt's answer asks for.
    pub hold: Option<Box<HoldRequest>>,
}

/// A request to hold everything with a job's limit key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// The job's own key.
    pub limit_key: Option<Arc<str>>,
    /// What the job calls: scheme, host and port.
    pub destination: Option<String>,
    /// For how long; the queue may limit it.
    pub span: Millis,
    /// Who asks.
    pub origin: HoldOrigin,
    /// Why, as text for the operator.
    pub reason: String,
}

impl Commit {
    /// A commit of `transition` for a claimed job. The caller adds what the attempt produced.
    #[must_use]
    pub fn new(
        job: &ClaimedJob,
        transition: Transition,
        worker: String,
        started_at: Timestamp,
        finished_at: Timestamp,
    ) -> Self {
        Self {
            job: job.id,
            attempt: job.attempt,
            lease: job.lease,
            queue: job.queue_id,
            kind: job.kind.clone(),
            delivery: job.delivery,
            schedule: job.schedule,
            transition,
            retry: job.failures,
            started_at,
            finished_at,
            due_at: job.due_at,
            worker,
            error_class: None,
            error: None,
            note: None,
            trace: None,
            replay: job.replays,
            result: None,
            follow_ups: Vec::new(),
            ended: Ended::Neutral,
            hold: None,
        }
    }

    /// Whether this is a success that stores nothing with the job but its attempt. Most commits are, so stores have a
    /// fast path for them.
    pub(crate) fn is_plain(&self) -> bool {
        let is_success = match self.transition.next {
            Next::Succeeded => true,
            Next::Failed(_) | Next::Cancelled | Next::Wait { .. } => false,
        };
        is_success
            && self.transition.crashes == 0
            && self.transition.failures == self.retry
            && self.error_class.is_none()
            && self.note.is_none()
            && self.result.is_none()
    }

    /// Whether the failed job is discarded at once, because an error rule says so.
    pub(crate) fn is_discarded(&self) -> bool {
        self.transition.effect == Effect::Discard && matches!(self.transition.next, Next::Failed(_))
    }

    /// Whether this transition stands even if a cancel was requested that its decider did not know of.
    #[must_use]
    pub fn stands_despite_cancel(&self) -> bool {
        match self.transition.next {
            Next::Succeeded | Next::Cancelled => true,
            Next::Failed(_) | Next::Wait { .. } => false,
        }
    }
}

/// The result of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// Applied now; the ids of its follow-ups in order.
    Applied(Vec<JobId>),
    /// The same result had been applied before (same attempt, lease and status): nothing changed now.
    Repeated,
    /// The caller no longer holds the attempt, or it ended otherwise: nothing changed.
    Stale,
    /// A cancel was requested that the transition does not honour: nothing changed. Decide again.
    CancelRequested,
}

/// A job that the store's own upkeep moved (reaped, expired), for logs, metrics and events.
#[derive(Debug, Clone)]
pub struct Transitioned {
    /// The job.
    pub job: Job,
    /// What the attempt changes.
    pub transition: Transition,
    /// The class of the error.
    pub error_class: Option<String>,
    /// The lease of the attempt that was lost; none if the job did not run.
    pub lease: Option<LeaseId>,
}
