//! Backoff: how long to wait before retry n, before jitter and cap. Pure arithmetic, without jobs, stores or clocks.
//! `jitter` spreads the delay.

use crate::time::Millis;
use std::fmt;

/// How delays grow from one retry to the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Backoff {
    /// `base · factor^(n-1)`
    Exponential { base: Millis, factor: Ratio },
    /// `base · n`
    Linear { base: Millis },
    /// `base`
    Fixed { base: Millis },
    /// `base · fib(n)`: 1, 1, 2, 3, 5, …
    Fibonacci { base: Millis },
    /// One delay after another; the last repeats. [`crate::policy::Partial::resolve`] refuses an empty list.
    Steps(Vec<Millis>),
}

impl Backoff {
    /// The delay of retry `n` (1 is the first), before cap and jitter. Saturates at [`Millis::MAX`].
    #[must_use]
    pub fn delay(&self, n: u32) -> Millis {
        let n = n.max(1);
        match self {
            Self::Exponential { base, factor } => exponential(*base, *factor, n - 1),
            Self::Linear { base } => Millis::new(base.get().saturating_mul(u64::from(n))),
            Self::Fixed { base } => *base,
            Self::Fibonacci { base } => Millis::new(base.get().saturating_mul(fibonacci(n))),
            Self::Steps(steps) => {
                let last = steps.len().saturating_sub(1);
                steps.get((n as usize - 1).min(last)).copied().unwrap_or(Millis::ZERO)
            }
        }
    }

    /// The first delay of the backoff; decorrelated jitter uses it as its base.
    #[must_use]
    pub fn base(&self) -> Millis {
        self.delay(1)
    }
}

/// Fraction bits kept while a fractional factor is raised to a power.
const FRACTION_BITS: u32 = 32;

fn exponential(base: Millis, factor: Ratio, power: u32) -> Millis {
    if base.is_zero() || factor.0 == Ratio::ONE.0 {
        return base;
    }
    if factor.0 == Ratio::TWO.0 {
        let grown = 1_u64.checked_shl(power).map_or(u64::MAX, |scale| base.get().saturating_mul(scale));
        return Millis::new(grown);
    }
    // Fixed point, not floating: the same policy gives the same delays on every machine.
    let limit = u128::from(Millis::MAX.get()) << FRACTION_BITS;
    let mut value = u128::from(base.get()) << FRACTION_BITS;
    for _ in 0..power {
        value = value * u128::from(factor.0) / u128::from(Ratio::ONE.0);
        if value >= limit {
            return Millis::MAX;
        }
        // Only a factor below one gets here. No checked policy has one, but the loop must still end soon.
        if value == 0 {
            break;
        }
    }
    let half = 1 << (FRACTION_BITS - 1);
    Millis::new(((value + half) >> FRACTION_BITS) as u64)
}

fn fibonacci(n: u32) -> u64 {
    let (mut a, mut b) = (0_u64, 1_u64);
    // fib(93) is the last that fits in 64 bits; later values saturate, far above any delay.
    for _ in 0..n.min(100) {
        (a, b) = (b, a.saturating_add(b));
    }
    a
}

/// A non-negative decimal number with up to six places, stored exactly: equal texts are equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    pub const ONE: Self = Self(1_000_000);
    pub const TWO: Self = Self(2_000_000);

    /// A ratio in millionths.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(millionths)
    }

    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Reads `2`, `1.5`, `0.2`; at most six decimal places and below 4294.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 6 {
            return None;
        }
        let whole: u32 = whole.parse().ok()?;
        let fraction: u32 = format!("{fraction:0<6}").parse().ok()?;
        whole.checked_mul(1_000_000)?.checked_add(fraction).map(Self)
    }

    /// This share of a span, rounded down.
    #[must_use]
    pub(crate) fn of(self, span: u64) -> u64 {
        let share = u128::from(span) * u128::from(self.0) / u128::from(Self::ONE.0);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}
