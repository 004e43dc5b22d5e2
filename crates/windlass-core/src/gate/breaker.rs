//! The circuit breaker: stops starts when a destination fails, tests it with one probe at a time, and closes when a
//! probe succeeds.

use super::buckets::Buckets;
use super::{CLOCK_SET_BACK, Ended, Pass};
use crate::backoff::Ratio;
use crate::time::{Millis, Timestamp};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BreakerRule {
    /// The time over which ended attempts are counted.
    pub window: Millis,
    /// It opens only after at least this many, and always after this many failures in a row.
    pub minimum: u32,
    /// The share of failures that opens it.
    pub ratio: Ratio,
    /// How long it stays open before the first probe.
    pub open_for: Millis,
    /// Each failed probe doubles that, up to this.
    pub max_open_for: Millis,
}

impl Default for BreakerRule {
    /// `breaker: "on"`.
    fn default() -> Self {
        Self {
            window: Millis::from_secs(60),
            minimum: 10,
            ratio: Ratio::from_millionths(500_000),
            open_for: Millis::from_secs(30),
            max_open_for: Millis::from_secs(600),
        }
    }
}

/// What a breaker does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open {
        /// When it lets a probe through.
        until: Timestamp,
    },
    /// The next start is a probe.
    HalfOpen,
    /// A probe is under way.
    Probing,
}

/// A breaker that has been ready to probe for this long, with nothing to probe with, is forgotten.
const FORGOTTEN_AFTER: Millis = Millis::from_secs(3600);

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Breaker {
    /// Attempts that ended, and those of them that failed at the destination.
    pub ended: Buckets,
    /// Failures at the destination in a row.
    pub in_a_row: u32,
    pub open: Option<Open>,
}

/// A breaker that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub since: Timestamp,
    pub span: Millis,
    pub is_probing: bool,
}

impl Breaker {
    pub(super) fn state(&self, now: Timestamp) -> BreakerState {
        match self.open {
            None => BreakerState::Closed,
            Some(Open { is_probing: true, .. }) => BreakerState::Probing,
            Some(open) if open.since > now + CLOCK_SET_BACK => BreakerState::HalfOpen,
            Some(open) if now < open.until() => BreakerState::Open { until: open.until() },
            Some(_) => BreakerState::HalfOpen,
        }
    }

    pub(super) fn recent(&self, now: Timestamp) -> (u32, u32) {
        self.ended.sums(now)
    }

    pub(super) const fn probe(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
    }

    /// Counts an ended attempt. Returns whether the breaker closed.
    pub(super) fn ended(&mut self, rule: &BreakerRule, pass: Pass, ended: Ended, now: Timestamp) -> bool {
        match self.open {
            Some(open) if pass.is_probe && open.is_probing => self.probed(rule, open, ended, now),
            // What started before the breaker opened says nothing new.
            Some(_) => false,
            None => {
                self.count(rule, ended, now);
                false
            }
        }
    }

    fn probed(&mut self, rule: &BreakerRule, open: Open, ended: Ended, now: Timestamp) -> bool {
        match ended {
            // A failure for another reason shows that the destination answers: it would not have opened the breaker.
            Ended::Succeeded | Ended::FailedOtherwise => {
                *self = Self::default();
                true
            }
            Ended::FailedAtDestination => {
                let doubled = Millis::new(open.span.get().saturating_mul(2));
                let span = doubled.clamp(rule.open_for, rule.max_open_for.max(rule.open_for));
                self.open = Some(Open { since: now, span, is_probing: false });
                false
            }
            Ended::Lost | Ended::Returned | Ended::Neutral => {
                self.open = Some(Open { is_probing: false, ..open });
                false
            }
        }
    }

    fn count(&mut self, rule: &BreakerRule, ended: Ended, now: Timestamp) {
        let failed = match ended {
            Ended::Succeeded | Ended::FailedOtherwise => 0,
            Ended::FailedAtDestination => 1,
            Ended::Lost | Ended::Returned | Ended::Neutral => return,
        };
        self.in_a_row = if failed == 1 { self.in_a_row.saturating_add(1) } else { 0 };
        let slice = Millis::new(rule.window.get().div_ceil(10));
        self.ended.add(slice, now, (1, failed));
        if failed == 1 && self.trips(rule, now) {
            *self = Self { open: Some(Open { since: now, span: rule.open_for, is_probing: false }), ..Self::default() };
        }
    }

    fn trips(&self, rule: &BreakerRule, now: Timestamp) -> bool {
        let (ended, failed) = self.ended.sums(now);
        let share = u64::from(failed) * u64::from(Ratio::ONE.millionths());
        let is_too_many = share >= u64::from(ended) * u64::from(rule.ratio.millionths());
        self.in_a_row >= rule.minimum || (ended >= rule.minimum && is_too_many)
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        let is_quiet = match self.open {
            None => true,
            Some(open) => !open.is_probing && now >= open.until() + FORGOTTEN_AFTER,
        };
        is_quiet && self.ended.sums(now).0 == 0
    }
}

impl Open {
    fn until(&self) -> Timestamp {
        self.since + self.span
    }
}
