//! The slow start after a hold or an open breaker: 1, 2, 4, … starts per second until a minute has passed, so that what
//! comes back is not overloaded again.

use super::{CLOCK_SET_BACK, WaitingFor};
use crate::time::{Millis, Timestamp};

const SECOND: Millis = Millis::from_secs(1);
/// From this second on nothing is slowed.
const SECONDS: u32 = 60;

/// A slow start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ramp {
    pub since: Timestamp,
    /// What it follows; a job that waits for the ramp waits for this.
    pub after: WaitingFor,
    /// The second of the last start, from 0.
    pub second: u32,
    /// Starts in that second.
    pub started: u32,
}

impl Ramp {
    pub(super) const fn new(since: Timestamp, after: WaitingFor) -> Self {
        Self { since, after, second: 0, started: 0 }
    }

    /// When to ask again, if this second's starts are used up.
    pub(super) fn refuses(&self, now: Timestamp) -> Option<Timestamp> {
        if self.left(now) > 0 {
            return None;
        }
        Some(self.since + Millis::from_secs(u64::from(self.second_of(now)) + 1))
    }

    /// How many may still start in this second.
    pub(super) fn left(&self, now: Timestamp) -> u32 {
        if self.is_over(now) {
            return u32::MAX;
        }
        let second = self.second_of(now);
        let allowed = 1_u32.checked_shl(second).unwrap_or(u32::MAX);
        // A second in the past: the clocks of two nodes differ a little. The later one counts.
        let used = if self.second >= second { self.started } else { 0 };
        allowed.saturating_sub(used)
    }

    pub(super) fn take(&mut self, now: Timestamp) {
        let second = self.second_of(now);
        if second > self.second {
            self.second = second;
            self.started = 0;
        }
        self.started = self.started.saturating_add(1);
    }

    pub(super) fn give_back(&mut self, now: Timestamp) {
        if self.second_of(now) == self.second {
            self.started = self.started.saturating_sub(1);
        }
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now >= self.since + Millis::from_secs(u64::from(SECONDS)) || self.since > now + CLOCK_SET_BACK
    }

    fn second_of(&self, now: Timestamp) -> u32 {
        (now.since(self.since).get() / SECOND.get()).min(u64::from(SECONDS)) as u32
    }
}
