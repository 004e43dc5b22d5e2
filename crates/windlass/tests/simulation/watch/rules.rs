//! The rules that a transition must keep, stated a second time and more simply than in the library.

use crate::watch::record::{Known, Line};
use windlass::core::{Delivery, Millis, Next, Reason, State, Status, Timestamp, Transition, Why};

/// How an attempt ended, as the record sees it.
#[derive(Debug, Clone, Copy)]
pub struct Close {
    pub transition: Transition,
    pub is_lost: bool,
    /// When it was decided, by the store's clock.
    pub decided_at: Timestamp,
}

impl Known {
    /// Applies the end of the running attempt. Whether a delivery must have been enqueued, or the rule that was broken.
    pub fn close(&mut self, close: Close, now: Timestamp) -> Result<bool, String> {
        let Transition { next, failures, crashes, status, why, effect: _ } = close.transition;
        self.lines.push(Line { number: self.attempt, retry: self.failures, status });
        self.failures += u32::from(status == Status::Failed && why != Why::CancelledByHandler && why != Why::Probe);
        self.crashes = if close.is_lost { self.crashes + 1 } else { 0 };
        self.open = None;
        self.expect(failures == self.failures, || format!("failures became {failures}, not {}", self.failures))?;
        self.expect(crashes == self.crashes, || format!("crashes became {crashes}, not {}", self.crashes))?;
        match next {
            Next::Succeeded => {
                self.expect(status == Status::Succeeded, || format!("succeeded by an attempt that ended {status}"))?;
                Ok(self.finish(State::Succeeded, now))
            }
            Next::Failed(reason) => {
                self.check_reason(reason)?;
                Ok(self.finish(State::Failed, now))
            }
            Next::Cancelled => {
                let asked = self.cancel_requested || why == Why::CancelledByHandler;
                self.expect(asked, || "cancelled, but nobody asked for it".into())?;
                Ok(self.finish(State::Cancelled, now))
            }
            Next::Wait { state, due_at, delay } => {
                self.check_wait(close, state, due_at, delay)?;
                (self.state, self.due_at) = (state, due_at);
                Ok(false)
            }
        }
    }

    fn check_reason(&self, reason: Reason) -> Result<(), String> {
        let policy = &self.new.policy;
        let fits = match reason {
            Reason::Exhausted => self.failures > policy.max_retries,
            Reason::CrashLoop => self.crashes >= policy.max_crashes,
            Reason::AtMostOnce => self.new.delivery == Delivery::AtMostOnce,
            Reason::Deadline => policy.max_elapsed.is_some(),
            Reason::Permanent => true,
            Reason::Expired => false,
        };
        self.expect(fits, || format!("given up as {reason} after {} failures", self.failures))
    }

    fn check_wait(&self, close: Close, state: State, due_at: Timestamp, delay: Millis) -> Result<(), String> {
        let policy = &self.new.policy;
        let status = close.transition.status;
        let has_started = self.starts.iter().any(|(number, _)| *number == self.attempt);
        let may_start_again =
            self.new.delivery == Delivery::AtLeastOnce || (status == Status::Released && !has_started);
        self.expect(may_start_again, || "waits for another start, but may start only once".into())?;
        self.expect(!self.cancel_requested, || "waits for another attempt, but its cancel was acknowledged".into())?;
        self.expect(due_at == close.decided_at + delay, || format!("due at {due_at}, not {delay} after its decision"))?;
        let is_retry = status == Status::Failed;
        let expected = if is_retry { State::Retrying } else { State::Queued };
        self.expect(state == expected, || format!("waits as {state}, not as {expected}"))?;
        if !is_retry {
            return Ok(());
        }
        self.expect(self.failures <= policy.max_retries, || format!("retried after {} failures", self.failures))?;
        self.expect(self.crashes < policy.max_crashes, || format!("retried after {} crashes in a row", self.crashes))?;
        if let (Some(limit), Some(first)) = (policy.max_elapsed, self.first_attempt_at) {
            self.expect(due_at <= first + limit, || "retried later than maxElapsed allows".into())?;
        }
        let cap = policy.max_delay.unwrap_or(Millis::MAX);
        let longest = match close.transition.why {
            Why::RetryAfter { .. } => cap + policy.max_retry_after,
            Why::RetryIn { .. } | Why::RuleRetry { .. } | Why::Rule { .. } | Why::Probe => Millis::MAX,
            Why::Backoff { .. }
            | Why::Succeeded
            | Why::Snoozed
            | Why::Released
            | Why::CancelRequested
            | Why::CancelledByHandler
            | Why::GaveUp(_) => cap,
        };
        self.expect(delay <= longest, || format!("waits {delay}, longer than its policy's {longest}"))
    }

    fn expect(&self, holds: bool, rule: impl FnOnce() -> String) -> Result<(), String> {
        if holds { Ok(()) } else { Err(format!("job {} attempt {}: {}", self.id, self.attempt, rule())) }
    }
}
