//! Jitter: a delay becomes a window, and a roll picks a moment in it. Pure.

use crate::backoff::Ratio;
use crate::time::Millis;

/// How a delay is spread, so that jobs that failed together do not come back together.
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

/// A random number drawn outside core: all of `u64`, evenly.
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

    /// The delay this roll picks: even over whole milliseconds, both ends included.
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

    /// Shifted down whole until its top is `cap`, never below zero: the cap is a promise, and delays at
    /// the cap still spread.
    #[must_use]
    pub(crate) fn under(self, cap: Millis) -> Self {
        let excess = self.max - cap;
        Self { min: self.min - excess, max: self.max - excess }
    }

    /// Shifted up whole until its bottom is `floor`: a wait that was asked for is kept, and still spreads.
    #[must_use]
    pub(crate) fn above(self, floor: Millis) -> Self {
        let lift = floor - self.min;
        Self { min: self.min + lift, max: self.max + lift }
    }
}

impl Jitter {
    /// The window around the capped delay `d`. `base` and `previous` matter to decorrelated jitter only.
    #[must_use]
    pub(crate) fn window(self, d: Millis, cap: Millis, base: Millis, previous: Millis) -> Window {
        let ms = d.get();
        match self {
            Self::None => Window::only(d),
            Self::Full => Window { min: Millis::ZERO, max: d },
            Self::Equal => Window { min: Millis::new(ms / 2), max: d },
            Self::Spread(f) => {
                Window { min: Millis::new(ms - f.of(ms).min(ms)), max: Millis::new(ms.saturating_add(f.of(ms))) }
                    .under(cap)
            }
            Self::Additive(f) => Window { min: d, max: Millis::new(ms.saturating_add(f.of(ms))) }.under(cap),
            Self::Decorrelated => {
                let min = base.min(cap);
                let top = Millis::new(previous.get().saturating_mul(3)).min(cap);
                Window { min, max: top.max(min) }
            }
        }
    }
}
