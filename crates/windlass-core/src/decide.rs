//! The decision: computes a transition from a running job and the outcome of its attempt. Pure and total. This is the
//! only place where a job's state changes after a claim.

use crate::attempt::Status;
use crate::failure::{Advice, Failure, WORKER_LOST};
use crate::jitter::{Roll, Window};
use crate::job::{Delivery, Reason, State};
use crate::policy::Policy;
use crate::time::{Millis, Timestamp};

/// The parts of a running job that the decision needs.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// Failures the policy has counted so far, without this attempt.
    pub failures: u32,
    /// Lost leases in a row, without this attempt.
    pub crashes: u32,
    /// When the first attempt of this allowance started.
    pub first_attempt_at: Timestamp,
    /// The delay before this attempt; zero before the first.
    pub previous_delay: Millis,
    pub delivery: Delivery,
    pub cancel_requested: bool,
    pub policy: &'a Policy,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed(Failure),
    /// The handler asked to be attempted again after this long.
    Snoozed(Millis),
    /// A stopping worker gives the job back.
    Released(Progress),
    /// The handler ended the job.
    Cancelled,
    /// The lease ran out.
    Lost,
}

/// Whether a released attempt had started. An at-most-once job may be given back only if it had not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    NotStarted,
    Started,
}

/// One complete change of a job's state; the unit a store commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    pub next: Next,
    /// The new count of failures.
    pub failures: u32,
    /// The new count of lost leases in a row.
    pub crashes: u32,
    /// The status recorded for this attempt.
    pub status: Status,
    pub why: Why,
}

/// The next state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Succeeded,
    Failed(Reason),
    Cancelled,
    /// Live again: `retrying` after a failure, `queued` after a snooze or release.
    Wait {
        state: State,
        due_at: Timestamp,
        delay: Millis,
    },
}

impl Next {
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Succeeded => State::Succeeded,
            Self::Failed(_) => State::Failed,
            Self::Cancelled => State::Cancelled,
            Self::Wait { state, .. } => state,
        }
    }

    /// The delay that decorrelated jitter grows from next time. A retry sets it; a snooze or release leaves it as it
    /// was.
    #[must_use]
    pub const fn remembered_delay(self) -> Option<Millis> {
        match self {
            Self::Wait { state: State::Retrying, delay, .. } => Some(delay),
            Self::Wait { .. } | Self::Succeeded | Self::Failed(_) | Self::Cancelled => None,
        }
    }

    /// When the next attempt is due, and how long that is from now.
    #[must_use]
    pub const fn wait(self) -> Option<(Timestamp, Millis)> {
        match self {
            Self::Wait { due_at, delay, .. } => Some((due_at, delay)),
            Self::Succeeded | Self::Failed(_) | Self::Cancelled => None,
        }
    }
}

/// The reason for a transition; recorded with the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Succeeded,
    /// The policy chose the delay; `base` is the delay before jitter.
    Backoff {
        retry: u32,
        of: u32,
        base: Millis,
    },
    /// The server or handler asked to wait at least `asked`.
    RetryAfter {
        retry: u32,
        of: u32,
        asked: Millis,
    },
    /// The failure asked for exactly this delay.
    RetryIn {
        retry: u32,
        of: u32,
    },
    Snoozed,
    Released,
    CancelRequested,
    CancelledByHandler,
    GaveUp(Reason),
}

/// Decides the next state of a running job.
///
/// Success always succeeds. After any other outcome, a requested cancel cancels the job. Snooze and
/// release wait and count no failure, unless the job may start only once. Any other outcome is a failure, and the
/// first rule that applies decides: at-most-once, permanent, crash loop, exhausted, deadline, retry.
///
/// ```
/// use windlass_core::policy::{Partial, Role};
/// use windlass_core::*;
///
/// let policy = Partial::resolve(&[Role::Http.default_policy()], &[])?;
/// let now = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
/// let job = Running {
///     failures: 1, // this is the first retry
///     crashes: 0,
///     first_attempt_at: now,
///     previous_delay: Millis::from_secs(1),
///     delivery: Delivery::AtLeastOnce,
///     cancel_requested: false,
///     policy: &policy,
/// };
/// let transition = decide(&job, &Outcome::Failed(Failure::new("503")), now, Roll(0));
/// assert_eq!(transition.next.state(), State::Retrying);
/// assert_eq!(transition.next.wait(), Some((now + Millis::from_secs(2), Millis::from_secs(2))));
/// assert_eq!(transition.why.to_string(), "retry 2/3: backoff 2s");
/// # Ok::<(), PolicyError>(())
/// ```
#[must_use]
pub fn decide(job: &Running<'_>, outcome: &Outcome, now: Timestamp, roll: Roll) -> Transition {
    let once = job.delivery == Delivery::AtMostOnce;
    match outcome {
        Outcome::Succeeded => job.end(Next::Succeeded, Status::Succeeded, Why::Succeeded),
        Outcome::Cancelled => job.end(Next::Cancelled, Status::Failed, Why::CancelledByHandler),
        Outcome::Snoozed(_) if job.cancel_requested => job.end(Next::Cancelled, Status::Snoozed, Why::CancelRequested),
        Outcome::Released(_) if job.cancel_requested => {
            job.end(Next::Cancelled, Status::Released, Why::CancelRequested)
        }
        Outcome::Snoozed(_) if once => job.give_up(Status::Snoozed, Reason::AtMostOnce),
        Outcome::Snoozed(span) => job.wait(now, *span, Status::Snoozed, Why::Snoozed),
        Outcome::Released(Progress::Started) if once => job.give_up(Status::Released, Reason::AtMostOnce),
        Outcome::Released(_) => job.wait(now, Millis::ZERO, Status::Released, Why::Released),
        Outcome::Failed(failure) => job.failed(failure.advice, job.policy.gives_up_on(failure), 0, now, roll),
        Outcome::Lost => {
            let crashes = job.crashes.saturating_add(1);
            job.failed(Advice::None, job.policy.gives_up_on_class(WORKER_LOST), crashes, now, roll)
        }
    }
}

impl Running<'_> {
    fn failed(&self, advice: Advice, given_up_on: bool, crashes: u32, now: Timestamp, roll: Roll) -> Transition {
        let failures = self.failures.saturating_add(1);
        let counted = |next, why| Transition { next, failures, crashes, status: Status::Failed, why };
        let give_up = |reason| counted(Next::Failed(reason), Why::GaveUp(reason));

        if self.cancel_requested {
            return counted(Next::Cancelled, Why::CancelRequested);
        }
        if self.delivery == Delivery::AtMostOnce {
            return give_up(Reason::AtMostOnce);
        }
        if advice == Advice::Permanent || given_up_on {
            return give_up(Reason::Permanent);
        }
        if crashes >= self.policy.max_crashes {
            return give_up(Reason::CrashLoop);
        }
        if failures > self.policy.max_retries {
            return give_up(Reason::Exhausted);
        }
        let (window, why) = self.next_window(failures, advice);
        let delay = window.pick(roll);
        let due_at = now + delay;
        if self.policy.max_elapsed.is_some_and(|limit| due_at > self.first_attempt_at + limit) {
            return give_up(Reason::Deadline);
        }
        counted(Next::Wait { state: State::Retrying, due_at, delay }, why)
    }

    fn next_window(&self, retry: u32, advice: Advice) -> (Window, Why) {
        let of = self.policy.max_retries;
        let window = self.policy.window(retry, self.previous_delay);
        match advice {
            Advice::RetryIn(exactly) => (Window::only(exactly), Why::RetryIn { retry, of }),
            Advice::RetryAfter(asked) if asked.min(self.policy.max_retry_after) > window.min => {
                (self.policy.window_after(retry, self.previous_delay, asked), Why::RetryAfter { retry, of, asked })
            }
            Advice::RetryAfter(_) | Advice::None | Advice::Permanent => {
                (window, Why::Backoff { retry, of, base: self.policy.delay(retry) })
            }
        }
    }

    fn give_up(&self, status: Status, reason: Reason) -> Transition {
        self.end(Next::Failed(reason), status, Why::GaveUp(reason))
    }

    /// Ends or postpones the job without counting a failure. The worker was not lost, so `crashes` starts again at 0.
    fn end(&self, next: Next, status: Status, why: Why) -> Transition {
        Transition { next, failures: self.failures, crashes: 0, status, why }
    }

    fn wait(&self, now: Timestamp, span: Millis, status: Status, why: Why) -> Transition {
        let next = Next::Wait { state: State::Queued, due_at: now + span, delay: span };
        self.end(next, status, why)
    }
}
