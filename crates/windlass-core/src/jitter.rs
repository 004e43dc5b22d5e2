//! Jitter: maps a delay to a window and picks a delay in it with a roll. Pure.

use crate::backoff::Ratio;
use crate::time::Millis;
use std::fmt;

/// How a delay is spread, so that jobs that failed at the same time do not all retry at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// No spread.
    None,
    /// Anywhere in `[0, d]`.
    Full,
    /// Anywhere in `[d/2, d]`.
    Equal,
    /// Anywhere in `[base, max(base, 3 · previous delay)]`, clipped to the cap.
    Decorrelated,
    /// Anywhere in `[d(1-f), d(1+f)]`.
    Spread(Ratio),
    /// Anywhere in `[d, d(1+f)]`.
    Additive(Ratio),
}

/// A random number drawn outside core, uniform over all of `u64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roll(pub u64);

/// The delays a roll can choose from, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub min: Millis,
    pub max: Millis,
}

impl Window {
    pub(crate) const fn only(delay: Millis) -> Self {
        Self { min: delay, max: delay }
    }

    /// The delay this roll picks: uniform over whole milliseconds, both ends included.
    #[must_use]
    pub fn pick(self, roll: Roll) -> Millis {
        let choices = u128::from(self.width()) + 1;
        let offset = (u128::from(roll.0) * choices) >> 64;
        Millis::new(self.min.get() + offset as u64)
    }

    #[must_use]
    pub const fn width(self) -> u64 {
        self.max.get() - self.min.get()
    }

    /// The whole window shifted up until its bottom is `floor`: the requested wait is kept, and delays still spread.
    #[must_use]
    pub(crate) fn above(self, floor: Millis) -> Self {
        let lift = floor - self.min;
        Self { min: self.min + lift, max: self.max + lift }
    }
}

/// The window from `min` to `max`, shifted down as a whole until its top is `cap`, never below zero. So no delay
/// exceeds the cap, and delays at the cap still spread.
fn shifted_under(cap: Millis, min: u64, max: u64) -> Window {
    let excess = max.saturating_sub(cap.get());
    Window { min: Millis::new(min.saturating_sub(excess)), max: Millis::new(max - excess) }
}

impl Jitter {
    /// The widest accepted share of `spread` and of `additive`.
    pub const MAX_SPREAD: Ratio = Ratio::ONE;
    pub const MAX_ADDITIVE: Ratio = Ratio::from_millionths(10_000_000);

    /// Reads `none`, `full`, `equal`, `decorrelated`, `spread(0.2)` or `additive(0.3)`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => return Some(Self::None),
            "full" => return Some(Self::Full),
            "equal" => return Some(Self::Equal),
            "decorrelated" => return Some(Self::Decorrelated),
            _ => {}
        }
        let share = |name: &str, most: Ratio| {
            let inner = text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
            Ratio::parse(inner.trim()).filter(|f| *f <= most)
        };
        let spread = share("spread", Self::MAX_SPREAD).map(Self::Spread);
        spread.or_else(|| share("additive", Self::MAX_ADDITIVE).map(Self::Additive))
    }

    /// The window around the capped delay `d`. Only decorrelated jitter uses `base` and `previous`.
    #[must_use]
    pub(crate) fn window(self, d: Millis, cap: Millis, base: Millis, previous: Millis) -> Window {
        let ms = d.get();
        match self {
            Self::None => Window::only(d),
            Self::Full => Window { min: Millis::ZERO, max: d },
            Self::Equal => Window { min: Millis::new(ms / 2), max: d },
            Self::Spread(f) => shifted_under(cap, ms.saturating_sub(f.of(ms)), ms.saturating_add(f.of(ms))),
            Self::Additive(f) => shifted_under(cap, ms, ms.saturating_add(f.of(ms))),
            Self::Decorrelated => {
                let min = base.min(cap);
                let top = Millis::new(previous.get().saturating_mul(3)).min(cap);
                Window { min, max: top.max(min) }
            }
        }
    }
}

/// The form that [`Jitter::parse`] reads back.
impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Equal => f.write_str("equal"),
            Self::Decorrelated => f.write_str("decorrelated"),
            Self::Spread(share) => write!(f, "spread({share})"),
            Self::Additive(share) => write!(f, "additive({share})"),
        }
    }
}
