//! Gates: the one mechanism behind everything that says "not yet". A gate knows how many attempts are in use, what its
//! rate, hold, circuit breaker and retry budget allow, and when something that was refused may start.
//!
//! Pure: `now` comes in as a value, and a refusal changes nothing. A store asks every gate of a job with
//! [`Gate::check`]; if all agree it calls [`Gate::start`] on each, and [`Gate::end`] when the attempt is over.

mod breaker;
mod buckets;
mod budget;
mod flow;
mod hold;
mod ramp;
mod rate;
pub(crate) mod read;
mod rule;
mod text;

pub use breaker::{BreakerRule, BreakerState};
pub use budget::BudgetRule;
pub use flow::{Across, Flow, Honor, KeyBy, MAX_LIMIT_KEY, destination};
pub use hold::{Hold, HoldOrigin};
pub(crate) use rate::Bucket;
pub use rate::Rate;
pub use read::{FLOW_FIELDS, FlowError};
pub use rule::{GateRule, Limits};
pub use text::GateTextError;

use crate::decide::{Outcome, Progress};
use crate::job::{Delivery, words};
use crate::policy::Policy;
use crate::time::{Millis, Timestamp};
use breaker::Breaker;
use budget::Budget;
use ramp::Ramp;
use std::fmt;

/// A clock this far behind a stored time was set back: what the stored time says about waiting no longer holds.
/// Smaller differences are those between the clocks of nodes.
pub(crate) const CLOCK_SET_BACK: Millis = Millis::from_secs(10);
/// How soon an at-most-once job is looked at again if it may not probe because something else should.
const LOOK_AGAIN: Millis = Millis::from_secs(1);

words! {
    /// What a waiting job waits for.
    WaitingFor {
        /// The time it was enqueued for.
        RunAt = "runAt",
        /// The delay before its next retry.
        Retry = "retry",
        /// As many attempts are in use as its queue or key allows.
        Concurrency = "concurrency",
        /// Its queue or key has used up its starts per time.
        Rate = "rate",
        /// Its queue or key is held, or is still starting slowly after a hold.
        Hold = "hold",
        /// The circuit breaker of its key is open, or is still letting starts through slowly after it closed.
        Breaker = "breaker",
        /// Its queue's retry budget is used up.
        Budget = "budget",
        /// Its queue is paused.
        Paused = "paused",
        /// Nobody works its queue or kind.
        Worker = "worker",
    }
}

/// The state of one gate. The default has nothing in use and is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gate {
    in_use: u32,
    bucket: Bucket,
    hold: Option<Hold>,
    ramp: Option<Ramp>,
    breaker: Breaker,
    budget: Budget,
}

/// What a gate needs to know about a job that wants to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Whether the job has failed before in its present allowance.
    pub is_retry: bool,
    pub delivery: Delivery,
    /// Whether something else waits behind the gate that may start more than once. Then an at-most-once job does not
    /// probe.
    pub has_others: bool,
}

impl Start {
    /// A first attempt that may be repeated.
    pub const FIRST: Self = Self { is_retry: false, delivery: Delivery::AtLeastOnce, has_others: false };
}

/// The permission to start. It is kept with the attempt and handed back to [`Gate::end`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pass {
    /// Whether the attempt tests a destination behind an open breaker.
    pub is_probe: bool,
}

/// Not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub waiting_for: WaitingFor,
    /// When to ask again; `None`: when an attempt of the gate ends.
    pub until: Option<Timestamp>,
}

/// How an attempt that passed a gate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Succeeded,
    /// It failed in a way that speaks of the destination.
    FailedAtDestination,
    /// It failed although the destination answered, or for a reason of its own.
    FailedOtherwise,
    /// Its lease ran out.
    Lost,
    /// It was given back unstarted: its token comes back.
    Returned,
    /// It was cancelled or snoozed, which says nothing about the destination.
    Neutral,
}

impl Ended {
    /// What the outcome of an attempt says to its gates. A failure without an HTTP status speaks of the destination
    /// only if the policy retries it.
    #[must_use]
    pub fn of(outcome: &Outcome, policy: &Policy) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed(failure) => {
                let is_retried = failure.status.is_some() || !policy.gives_up_on(failure);
                let is_down = is_retried && failure.speaks_of_the_destination();
                if is_down { Self::FailedAtDestination } else { Self::FailedOtherwise }
            }
            Outcome::Released(Progress::NotStarted) => Self::Returned,
            Outcome::Snoozed(_) | Outcome::Released(Progress::Started) | Outcome::Cancelled => Self::Neutral,
            Outcome::Lost => Self::Lost,
        }
    }
}

/// When something parked behind a gate may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    Now,
    At(Timestamp),
    /// When an attempt of the gate ends.
    OnEvent,
}

impl Gate {
    /// A gate that has only counted, with so many attempts in use.
    #[must_use]
    pub fn counting(in_use: u32) -> Self {
        Self { in_use, ..Self::default() }
    }

    /// Whether a job may start now. Changes nothing.
    ///
    /// # Errors
    /// What it waits for, and until when.
    pub fn check(&self, rule: &GateRule, start: Start, now: Timestamp) -> Result<Pass, Refusal> {
        let refuse = |waiting_for, until| Err(Refusal { waiting_for, until });
        if let Some(hold) = self.held(now) {
            return refuse(WaitingFor::Hold, Some(hold.until));
        }
        let state = self.breaker_state(rule, now);
        match state {
            BreakerState::Open { until } => return refuse(WaitingFor::Breaker, Some(until)),
            BreakerState::Probing => return refuse(WaitingFor::Breaker, None),
            BreakerState::HalfOpen if start.delivery == Delivery::AtMostOnce && start.has_others => {
                return refuse(WaitingFor::Breaker, Some(now + LOOK_AGAIN));
            }
            BreakerState::HalfOpen | BreakerState::Closed => {}
        }
        if let Some(ramp) = &self.ramp
            && let Some(until) = ramp.refuses(now)
        {
            return refuse(ramp.after, Some(until));
        }
        if rule.limits.concurrency.is_some_and(|most| self.in_use >= most) {
            return refuse(WaitingFor::Concurrency, None);
        }
        if let Some(until) = rule.limits.rate.and_then(|rate| self.bucket.refuses(rate, now)) {
            return refuse(WaitingFor::Rate, Some(until));
        }
        // A probe is one start: it tests the destination, whatever the budget of retries says.
        let is_probe = state == BreakerState::HalfOpen;
        if start.is_retry
            && !is_probe
            && let Some(until) = rule.budget.and_then(|budget| self.budget.refuses(budget, now))
        {
            return refuse(WaitingFor::Budget, Some(until));
        }
        Ok(Pass { is_probe })
    }

    /// Records a start. Call it after every gate of the job has agreed, with the pass that this gate gave.
    pub fn start(&mut self, rule: &GateRule, start: Start, pass: Pass, now: Timestamp) {
        self.tidy(rule, now);
        self.in_use = self.in_use.saturating_add(1);
        if let Some(rate) = rule.limits.rate {
            self.bucket.take(rate, now);
        }
        if let Some(ramp) = &mut self.ramp {
            ramp.take(now);
        }
        if pass.is_probe {
            self.breaker.probe();
        }
        if rule.budget.is_some() {
            self.budget.started(start.is_retry, now);
        }
    }

    /// Records the end of an attempt that passed this gate.
    pub fn end(&mut self, rule: &GateRule, pass: Pass, ended: Ended, now: Timestamp) {
        self.tidy(rule, now);
        self.in_use = self.in_use.saturating_sub(1);
        if ended == Ended::Returned {
            if let Some(rate) = rule.limits.rate {
                self.bucket.give_back(rate);
            }
            if let Some(ramp) = &mut self.ramp {
                ramp.give_back(now);
            }
        }
        if let Some(breaker) = &rule.breaker
            && self.breaker.ended(breaker, pass, ended, now)
        {
            self.slow_start(now, WaitingFor::Breaker);
        }
    }

    /// Holds the gate. An automatic hold never shortens the one in force; an operator's replaces it.
    pub fn hold(&mut self, hold: Hold) {
        let is_shorter = self.hold.as_ref().is_some_and(|old| old.until >= hold.until);
        if hold.origin.is_automatic() && is_shorter {
            return;
        }
        // The slow start after the hold is known now: nobody has to be there when the hold ends.
        self.ramp = Some(Ramp::new(hold.until, WaitingFor::Hold));
        self.hold = Some(hold);
    }

    /// Ends a hold. Starts are slow at first.
    pub fn release(&mut self, now: Timestamp) {
        if self.held(now).is_some() {
            self.ramp = Some(Ramp::new(now, WaitingFor::Hold));
        }
        self.hold = None;
    }

    /// When a first attempt that is parked behind this gate may next start.
    #[must_use]
    pub fn opens(&self, rule: &GateRule, now: Timestamp) -> Opens {
        self.opens_to(rule, Start::FIRST, now)
    }

    /// The same for any start.
    #[must_use]
    pub fn opens_to(&self, rule: &GateRule, start: Start, now: Timestamp) -> Opens {
        match self.check(rule, start, now) {
            Ok(_) => Opens::Now,
            Err(Refusal { until: Some(at), .. }) => Opens::At(at),
            Err(Refusal { until: None, .. }) => Opens::OnEvent,
        }
    }

    /// How many first attempts could start now; `u32::MAX` if nothing limits them. Letting go more than this many would
    /// only park them again.
    #[must_use]
    pub fn room(&self, rule: &GateRule, now: Timestamp) -> u32 {
        if self.opens(rule, now) != Opens::Now {
            return 0;
        }
        if self.breaker_state(rule, now) == BreakerState::HalfOpen {
            return 1;
        }
        let slots = rule.limits.concurrency.map_or(u32::MAX, |most| most.saturating_sub(self.in_use));
        let tokens = rule.limits.rate.map_or(u32::MAX, |rate| self.bucket.tokens(rate, now));
        let ramp = self.ramp.as_ref().map_or(u32::MAX, |ramp| ramp.left(now));
        slots.min(tokens).min(ramp)
    }

    /// How many attempts hold a slot.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Whether it is nothing but a count of attempts in use: no hold, no slow start, nothing counted over time.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.hold.is_none()
            && self.ramp.is_none()
            && self.bucket.ahead == 0
            && self.breaker == Breaker::default()
            && self.budget == Budget::default()
    }

    /// The hold in force.
    #[must_use]
    pub fn held(&self, now: Timestamp) -> Option<&Hold> {
        self.hold.as_ref().filter(|hold| hold.is_in_force(now))
    }

    /// The breaker's state. [`BreakerState::Closed`] if it never opened.
    #[must_use]
    pub fn breaker(&self, now: Timestamp) -> BreakerState {
        self.breaker.state(now)
    }

    /// Attempts that ended within the breaker's window, and how many of them failed at the destination.
    #[must_use]
    pub fn recent(&self, now: Timestamp) -> (u32, u32) {
        self.breaker.recent(now)
    }

    /// Whether nothing would be forgotten if the gate were. A breaker that has been ready to probe for long is
    /// forgotten.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.in_use == 0
            && self.held(now).is_none()
            && self.ramp.as_ref().is_none_or(|ramp| ramp.is_over(now))
            && self.bucket.is_empty(now)
            && self.breaker.is_idle(now)
            && self.budget.is_idle(now)
    }

    fn breaker_state(&self, rule: &GateRule, now: Timestamp) -> BreakerState {
        if rule.breaker.is_some() { self.breaker.state(now) } else { BreakerState::Closed }
    }

    fn slow_start(&mut self, since: Timestamp, after: WaitingFor) {
        // A hold that ends later starts its own slow start, which replaces this one.
        if self.ramp.as_ref().is_none_or(|ramp| ramp.since < since) {
            self.ramp = Some(Ramp::new(since, after));
        }
    }

    /// Forgets what no longer matters, so that a gate's text stays short.
    fn tidy(&mut self, rule: &GateRule, now: Timestamp) {
        // While a hold is in force, the slow start after it is still to come.
        if self.held(now).is_none() {
            self.hold = None;
            self.ramp.take_if(|ramp| ramp.is_over(now));
        }
        if rule.limits.rate.is_none() {
            self.bucket = Bucket::default();
        }
        if rule.breaker.is_none() {
            self.breaker = Breaker::default();
        }
        if rule.budget.is_none() {
            self.budget = Budget::default();
        }
    }
}

#[cfg(test)]
mod tests;
