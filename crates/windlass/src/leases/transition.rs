//! Transition: makes a commit of an outcome by core's decision, with its webhook delivery if there is one and all
//! text valid for a store. The worker commits what it ran; stores commit what they reap, expire and cancel. Pure.

use super::text::{clean, clean_trace, note_and_result};
use crate::job::{ClaimedJob, Job, NewJob};
use crate::store::{Commit, HoldRequest, Transitioned};
use crate::webhook::{self, Ending};
use windlass_core::attempt::Status;
use windlass_core::failure::WORKER_LOST;
use windlass_core::gate::{Ended, HoldOrigin, destination};
use windlass_core::{
    Advice, Effect, Executor, Failure, LiveRules, Millis, Next, Outcome, Reason, Roll, Running, Timestamp, Transition,
    Why, decide,
};

/// The message of a lost attempt.
const LOST_MESSAGE: &str = "the worker's lease ran out before it reported how the attempt ended";

/// What an attempt produced in addition to its outcome.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// The worker's id.
    pub worker: String,
    /// What the handler noted.
    pub note: Option<String>,
    /// The JSON text that the handler returned.
    pub result: Option<crate::job::Payload>,
}

/// The commit for the outcome of a claimed job whose kind and queue have no error rules.
#[must_use]
pub fn commit_of(job: &ClaimedJob, outcome: &Outcome, trace: Trace, roll: Roll) -> Commit {
    commit_by(job, outcome, LiveRules::default(), trace, roll)
}

/// The commit for the outcome of a claimed job. `rules` are the error rules of its kind and queue as they are now.
#[must_use]
pub(crate) fn commit_by(job: &ClaimedJob, outcome: &Outcome, rules: LiveRules<'_>, trace: Trace, roll: Roll) -> Commit {
    let running = Running { is_probe: job.is_probe, rules, ..job.running() };
    let transition = decide(&running, outcome, trace.finished_at, roll);
    let (error_class, error) = reported(outcome);
    let (note, result) = note_and_result(trace.note.as_deref(), trace.result);
    let ending = Ending { error_class: error_class.as_deref(), error: error.as_deref(), result: result.as_deref() };
    let follow_ups: Vec<NewJob> =
        webhook::delivery(job, transition.next, ending, trace.finished_at).into_iter().collect();
    Commit {
        error_class,
        error,
        note,
        result,
        trace: traced(outcome),
        follow_ups,
        ended: Ended::of(outcome, &job.policy),
        hold: hold(job, outcome, transition.effect).map(Box::new),
        ..Commit::new(job, transition, trace.worker, trace.started_at, trace.finished_at)
    }
}

/// The commit of an attempt whose worker was lost.
#[must_use]
pub(crate) fn lost(job: &ClaimedJob, worker: &str, now: Timestamp, roll: Roll) -> Commit {
    let started_at = job.claimed_at.unwrap_or(now);
    let trace = Trace { started_at, finished_at: now, worker: worker.into(), note: None, result: None };
    // A lost attempt matches no rule.
    commit_of(job, &Outcome::Lost, trace, roll)
}

/// A waiting job that ends without an attempt: its transition, and the delivery that reports it.
#[must_use]
pub(crate) fn ended_waiting(job: &Job, next: Next, now: Timestamp) -> (Transition, Option<NewJob>) {
    let why = match next {
        Next::Failed(reason) => Why::GaveUp(reason),
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => Why::CancelRequested,
    };
    let ending = Ending { error_class: job.error_class.as_deref(), error: job.error.as_deref(), result: None };
    let transition = Transition {
        next,
        failures: job.failures,
        crashes: job.crashes,
        status: Status::Failed,
        why,
        effect: Effect::None,
    };
    (transition, webhook::delivery(job, next, ending, now))
}

/// Changes a job as a transition says.
pub(crate) fn apply(job: &mut Job, transition: &Transition, now: Timestamp) {
    job.state = transition.next.state();
    job.failures = transition.failures;
    job.crashes = transition.crashes;
    match transition.next {
        Next::Wait { due_at, .. } => {
            job.due_at = due_at;
            job.previous_delay = transition.next.remembered_delay().unwrap_or(job.previous_delay);
        }
        Next::Failed(reason) => {
            job.reason = Some(reason);
            job.finished_at = Some(now);
        }
        Next::Succeeded | Next::Cancelled => job.finished_at = Some(now),
    }
}

/// The transition of a job that was not started in time.
pub(crate) const EXPIRED: Next = Next::Failed(Reason::Expired);

impl Transitioned {
    pub(crate) fn new(job: Job, commit: &Commit) -> Self {
        let lease = Some(commit.lease);
        Self { job, transition: commit.transition, error_class: commit.error_class.clone(), lease }
    }
}

/// The hold that an attempt's end asks for: an error rule, or an answer with `Retry-After`. Of calls, only the answers
/// 429 and 503 do.
fn hold(job: &Job, outcome: &Outcome, effect: Effect) -> Option<HoldRequest> {
    let request = |span: Millis, origin: HoldOrigin, why: &str| HoldRequest {
        limit_key: job.limit_key.clone(),
        destination: job.http.as_deref().and_then(|call| destination(&call.url)),
        span,
        origin,
        reason: format!("job {} {why}", job.id),
    };
    if let Effect::HoldKey(span) = effect {
        return Some(request(span, HoldOrigin::Rule, "failed, and an error rule holds its key"));
    }
    let Outcome::Failed(failure) = outcome else { return None };
    let Advice::RetryAfter(span) = failure.advice else { return None };
    let is_asked = match job.executor {
        Executor::Http => matches!(failure.status, Some(429 | 503)),
        Executor::Worker => true,
    };
    is_asked.then(|| request(span, HoldOrigin::RetryAfter, "was answered with Retry-After"))
}

fn reported(outcome: &Outcome) -> (Option<String>, Option<String>) {
    match outcome {
        Outcome::Failed(Failure { class, message, .. }) => (Some(clean(class)), Some(clean(message))),
        Outcome::Lost => (Some(WORKER_LOST.into()), Some(LOST_MESSAGE.into())),
        Outcome::Cancelled => (Some("Cancelled".into()), Some("the handler cancelled the job".into())),
        Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) => (None, None),
    }
}

fn traced(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed(failure) => failure.trace.as_deref().and_then(clean_trace),
        Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) | Outcome::Cancelled | Outcome::Lost => None,
    }
}
