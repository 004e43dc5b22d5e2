//! Settling: an outcome becomes a commit, by core's decision, with the webhook delivery it calls for. The worker settles
//! what it ran; stores settle what they reap, expire and cancel. Pure.

use crate::job::{Job, NewJob};
use crate::store::{Commit, Transitioned};
use crate::webhook::{self, Ending};
use windlass_core::attempt::Status;
use windlass_core::failure::WORKER_LOST;
use windlass_core::{Failure, Next, Outcome, Reason, Roll, Timestamp, Transition, Why, decide};

/// The message of a lost attempt.
const LOST_MESSAGE: &str = "the worker's lease ran out before it told how the attempt ended";

/// What an attempt left behind besides its outcome.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub worker: String,
    pub note: Option<String>,
    pub result: Option<crate::job::Payload>,
}

/// The commit that a claimed job's outcome calls for.
#[must_use]
pub fn transition_of(job: &Job, outcome: &Outcome, trace: Trace, roll: Roll) -> Commit {
    let transition = decide(&job.running(), outcome, trace.finished_at, roll);
    let (error_class, error) = reported(outcome);
    let ending =
        Ending { error_class: error_class.as_deref(), error: error.as_deref(), result: trace.result.as_deref() };
    let follow_ups: Vec<NewJob> =
        webhook::delivery(job, transition.next, ending, trace.finished_at).into_iter().collect();
    Commit {
        error_class,
        error,
        note: trace.note,
        result: trace.result,
        follow_ups,
        ..Commit::new(job, transition, trace.worker, trace.started_at, trace.finished_at)
    }
}

/// The commit of an attempt whose worker was lost.
#[must_use]
pub(crate) fn lost(job: &Job, worker: &str, now: Timestamp, roll: Roll) -> Commit {
    let started_at = job.claimed_at.unwrap_or(now);
    let trace = Trace { started_at, finished_at: now, worker: worker.into(), note: None, result: None };
    transition_of(job, &Outcome::Lost, trace, roll)
}

/// A waiting job that ends without an attempt: its transition, and the delivery that tells about it.
#[must_use]
pub(crate) fn ended_waiting(job: &Job, next: Next, now: Timestamp) -> (Transition, Option<NewJob>) {
    let why = match next {
        Next::Failed(reason) => Why::GaveUp(reason),
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => Why::CancelRequested,
    };
    let ending = Ending { error_class: job.error_class.as_deref(), error: job.error.as_deref(), result: None };
    let transition = Transition { next, failures: job.failures, crashes: job.crashes, status: Status::Failed, why };
    (transition, webhook::delivery(job, next, ending, now))
}

/// Where a job goes that was not started in time.
pub(crate) const EXPIRED: Next = Next::Failed(Reason::Expired);

impl Transitioned {
    pub(crate) fn new(job: Job, commit: &Commit) -> Self {
        Self { job, transition: commit.transition, error_class: commit.error_class.clone() }
    }
}

fn reported(outcome: &Outcome) -> (Option<String>, Option<String>) {
    match outcome {
        Outcome::Failed(Failure { class, message, .. }) => (Some(clean(class)), Some(clean(message))),
        Outcome::Lost => (Some(WORKER_LOST.into()), Some(LOST_MESSAGE.into())),
        Outcome::Cancelled => (Some("Cancelled".into()), Some("the handler cancelled the job".into())),
        Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) => (None, None),
    }
}

/// Longest class or message kept, in bytes.
const TEXT_LIMIT: usize = 8 * 1024;

/// Databases refuse NUL, and an endless message helps nobody.
fn clean(text: &str) -> String {
    let mut end = text.len().min(TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "\u{FFFD}")
}
