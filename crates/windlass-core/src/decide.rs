//! The decision: computes a transition from a running job and the outcome of its attempt. Pure and total. This is the
//! only place where a job's state changes after a claim.

use crate::attempt::Status;
use crate::failure::{Advice, Failure, WORKER_LOST};
use crate::jitter::{Roll, Window};
use crate::job::{Delivery, Reason, State};
use crate::policy::Policy;
use crate::rules::{LiveRules, Rule, RuleName, Then, first_match};
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
    /// Whether this attempt tested a destination behind an open breaker.
    pub is_probe: bool,
    pub policy: &'a Policy,
    /// The error rules of its kind and queue as they are now; those of its policy are in the policy.
    pub rules: LiveRules<'a>,
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
    pub effect: Effect,
}

/// What a transition does besides changing the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    #[default]
    None,
    /// Nothing of the job's key starts for this long.
    HoldKey(Millis),
    /// The failed job is a dead letter that needs no action.
    Discard,
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

    /// Whether the job ends with it.
    #[must_use]
    pub const fn is_finished(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed(_) | Self::Cancelled => true,
            Self::Wait { .. } => false,
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
    /// An error rule retries.
    RuleRetry {
        rule: RuleName,
        retry: u32,
        of: u32,
        delay: Millis,
    },
    /// An error rule ended or postponed the job, without counting a failure if it postponed it.
    Rule {
        rule: RuleName,
        then: Then,
    },
    /// A probe failed: it counts no failure, and the job waits for the breaker.
    Probe,
}

/// Decides the next state of a running job.
///
/// Success always succeeds. After any other outcome, a requested cancel cancels the job. Snooze and
/// release wait and count no failure, unless the job may start only once. Any other outcome is a failure, and the
/// first that applies decides: at-most-once, permanent, error rules, the policy's lists, crash loop, exhausted,
/// deadline, retry. A lost attempt matches no error rule.
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
///     is_probe: false,
///     policy: &policy,
///     rules: LiveRules::default(),
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
        Outcome::Failed(failure) => job.failed(failure, now, roll),
        Outcome::Lost => {
            let crashes = job.crashes.saturating_add(1);
            let given_up_on = job.policy.gives_up_on_class(WORKER_LOST);
            job.ended_early(Advice::None, crashes).unwrap_or_else(|| {
                if given_up_on {
                    job.counted_end(Reason::Permanent, crashes)
                } else {
                    job.retry(Advice::None, None, crashes, now, roll)
                }
            })
        }
    }
}

impl Running<'_> {
    /// A reported failure. The first that applies decides: cancel, at-most-once, the handler's own `permanent`, an
    /// error rule, the policy's lists, the excuse of a probe, and then the policy's limits.
    fn failed(&self, failure: &Failure, now: Timestamp, roll: Roll) -> Transition {
        if let Some(end) = self.ended_early(failure.advice, 0) {
            return end;
        }
        match first_match(&self.policy.rules, self.rules, failure) {
            Some((name, rule)) => self.ruled(failure, name, rule, now, roll),
            None if self.policy.gives_up_on(failure) => self.counted_end(Reason::Permanent, 0),
            None if self.is_probe && failure.speaks_of_the_destination() => self.probed(now),
            None => self.retry(failure.advice, None, 0, now, roll),
        }
    }

    /// What ends a job before any rule: a cancel, its delivery, the handler's own word.
    fn ended_early(&self, advice: Advice, crashes: u32) -> Option<Transition> {
        if self.cancel_requested {
            return Some(self.counted(Next::Cancelled, Why::CancelRequested, crashes));
        }
        if self.delivery == Delivery::AtMostOnce {
            return Some(self.counted_end(Reason::AtMostOnce, crashes));
        }
        (advice == Advice::Permanent).then(|| self.counted_end(Reason::Permanent, crashes))
    }

    fn ruled(&self, failure: &Failure, name: RuleName, rule: &Rule, now: Timestamp, roll: Roll) -> Transition {
        let why = Why::Rule { rule: name, then: rule.then };
        let ended = || self.counted(Next::Failed(Reason::Permanent), why, 0);
        let span = rule.span.unwrap_or(Millis::ZERO);
        match rule.then {
            Then::Retry if self.is_probe && failure.speaks_of_the_destination() => self.probed(now),
            Then::Retry => self.retry(failure.advice, Some((name, rule)), 0, now, roll),
            Then::GiveUp => ended(),
            Then::Discard => Transition { effect: Effect::Discard, ..ended() },
            Then::Snooze => self.postpone(now, span, Status::Snoozed, why),
            Then::Hold => {
                Transition { effect: Effect::HoldKey(span), ..self.postpone(now, span, Status::Snoozed, why) }
            }
        }
    }

    /// The failure of a probe counts nothing. The job is due at once: the breaker is open again and makes it wait.
    fn probed(&self, now: Timestamp) -> Transition {
        self.postpone(now, Millis::ZERO, Status::Failed, Why::Probe)
    }

    /// Waits without counting a failure, unless `maxElapsed` would pass.
    fn postpone(&self, now: Timestamp, span: Millis, status: Status, why: Why) -> Transition {
        if self.is_past_deadline(now + span) {
            return self.give_up(status, Reason::Deadline);
        }
        self.wait(now, span, status, why)
    }

    fn retry(
        &self,
        advice: Advice,
        rule: Option<(RuleName, &Rule)>,
        crashes: u32,
        now: Timestamp,
        roll: Roll,
    ) -> Transition {
        let failures = self.failures.saturating_add(1);
        if crashes >= self.policy.max_crashes {
            return self.counted_end(Reason::CrashLoop, crashes);
        }
        if failures > self.policy.max_retries {
            return self.counted_end(Reason::Exhausted, crashes);
        }
        let (window, why) = self.next_window(failures, advice, rule.map(|(_, rule)| rule));
        let delay = window.pick(roll);
        let due_at = now + delay;
        if self.is_past_deadline(due_at) {
            return self.counted_end(Reason::Deadline, crashes);
        }
        let why = match rule {
            Some((rule, _)) => Why::RuleRetry { rule, retry: failures, of: self.policy.max_retries, delay },
            None => why,
        };
        self.counted(Next::Wait { state: State::Retrying, due_at, delay }, why, crashes)
    }

    fn is_past_deadline(&self, due_at: Timestamp) -> bool {
        self.policy.max_elapsed.is_some_and(|limit| due_at > self.first_attempt_at + limit)
    }

    fn next_window(&self, retry: u32, advice: Advice, rule: Option<&Rule>) -> (Window, Why) {
        let of = self.policy.max_retries;
        let delays = rule.and_then(|rule| rule.policy.as_deref()).unwrap_or(self.policy);
        let span = rule.and_then(|rule| rule.span);
        let window = span.map_or_else(|| delays.window(retry, self.previous_delay), Window::only);
        match advice {
            Advice::RetryIn(exactly) if span.is_none() => (Window::only(exactly), Why::RetryIn { retry, of }),
            Advice::RetryAfter(asked) if asked.min(self.policy.max_retry_after) > window.min => {
                (window.above(asked.min(self.policy.max_retry_after)), Why::RetryAfter { retry, of, asked })
            }
            Advice::RetryIn(_) | Advice::RetryAfter(_) | Advice::None | Advice::Permanent => {
                (window, Why::Backoff { retry, of, base: delays.delay(retry) })
            }
        }
    }

    /// Counts a failure.
    fn counted(&self, next: Next, why: Why, crashes: u32) -> Transition {
        let failures = self.failures.saturating_add(1);
        Transition { next, failures, crashes, status: Status::Failed, why, effect: Effect::None }
    }

    fn counted_end(&self, reason: Reason, crashes: u32) -> Transition {
        self.counted(Next::Failed(reason), Why::GaveUp(reason), crashes)
    }

    fn give_up(&self, status: Status, reason: Reason) -> Transition {
        self.end(Next::Failed(reason), status, Why::GaveUp(reason))
    }

    /// Ends or postpones the job without counting a failure. The worker was not lost, so `crashes` starts again at 0.
    fn end(&self, next: Next, status: Status, why: Why) -> Transition {
        Transition { next, failures: self.failures, crashes: 0, status, why, effect: Effect::None }
    }

    fn wait(&self, now: Timestamp, span: Millis, status: Status, why: Why) -> Transition {
        let next = Next::Wait { state: State::Queued, due_at: now + span, delay: span };
        self.end(next, status, why)
    }
}
