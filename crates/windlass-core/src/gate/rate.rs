//! Rates: at most so many starts per time. A generic cell rate algorithm with one number and one time as its state, so
//! that in no stretch of length t more than `rate · t + burst` start.

use super::CLOCK_SET_BACK;
use crate::time::{Millis, Timestamp};
use std::fmt;

/// At most `count` starts per `per`, and `burst` of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    pub count: u32,
    pub per: Millis,
    pub burst: u32,
}

const NANOS: u64 = 1_000_000;

impl Rate {
    /// The largest count.
    pub const MAX_COUNT: u32 = 1_000_000;
    /// The longest time a rate is counted over.
    pub const MAX_PER: Millis = Millis::from_secs(86_400);
    /// The largest burst. With the longest interval it still fits the state.
    pub const MAX_BURST: u32 = 100_000;

    /// Reads `100/1m`, with the default burst: one second's worth, at least 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (count, per) = text.split_once('/')?;
        let digits = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
        let count = count.parse().ok().filter(|n| digits && (1..=Self::MAX_COUNT).contains(n))?;
        // `10/s` and `10/1s` are the same.
        let is_unit = per.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        let per = if is_unit { Millis::parse(&format!("1{per}")) } else { Millis::parse(per) }.ok()?;
        let is_span = !per.is_zero() && per <= Self::MAX_PER;
        is_span.then(|| Self { count, per, burst: Self::default_burst(count, per) })
    }

    /// The same rate with this burst.
    #[must_use]
    pub const fn with_burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// One second's worth, at least 1.
    #[must_use]
    pub fn default_burst(count: u32, per: Millis) -> u32 {
        let worth = u64::from(count) * 1000 / per.get().max(1);
        u32::try_from(worth).unwrap_or(u32::MAX).clamp(1, Self::MAX_BURST)
    }

    /// Nanoseconds between two starts, rounded up: a rate is a promise.
    fn interval(self) -> u64 {
        (self.per.get() * NANOS).div_ceil(u64::from(self.count.max(1)))
    }

    /// How far starts may run ahead.
    fn capacity(self) -> u64 {
        self.interval().saturating_mul(u64::from(self.burst.max(1)))
    }
}

/// `100/1m`; the burst is a field of its own.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per)
    }
}

/// How far starts have run ahead of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bucket {
    /// Nanoseconds ahead at `at`.
    pub ahead: u64,
    pub at: Timestamp,
}

impl Bucket {
    /// When the next start is allowed, if not now.
    pub(crate) fn refuses(&self, rate: Rate, now: Timestamp) -> Option<Timestamp> {
        let excess = (self.ahead(now) + rate.interval()).saturating_sub(rate.capacity());
        (excess > 0).then(|| self.at.max(now) + Millis::new(excess.div_ceil(NANOS)))
    }

    /// How many may start at once.
    pub(super) fn tokens(&self, rate: Rate, now: Timestamp) -> u32 {
        let free = rate.capacity().saturating_sub(self.ahead(now)) / rate.interval().max(1);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    pub(crate) fn take(&mut self, rate: Rate, now: Timestamp) {
        let at = if self.is_set_back(now) { now } else { self.at.max(now) };
        *self = Self { ahead: self.ahead(now).saturating_add(rate.interval()), at };
    }

    pub(super) fn give_back(&mut self, rate: Rate) {
        let ahead = self.ahead.saturating_sub(rate.interval());
        *self = if ahead == 0 { Self::default() } else { Self { ahead, ..*self } };
    }

    pub(super) fn is_empty(&self, now: Timestamp) -> bool {
        self.ahead(now) == 0
    }

    /// What is left of the lead. While a clock is behind, nothing is gained: two clocks that differ would otherwise
    /// each gain the difference again and again. A clock that was set back starts anew, at the cost of one burst.
    fn ahead(&self, now: Timestamp) -> u64 {
        if self.is_set_back(now) {
            return 0;
        }
        self.ahead.saturating_sub(now.since(self.at).get().saturating_mul(NANOS))
    }

    fn is_set_back(&self, now: Timestamp) -> bool {
        self.at > now + CLOCK_SET_BACK
    }
}
