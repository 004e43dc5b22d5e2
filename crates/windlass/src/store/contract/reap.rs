//! Reaping: which leases are over.

use super::WorkerId;
use windlass_core::Millis;

/// Whose leases to reap.
#[derive(Debug, Clone)]
pub enum Reap {
    /// Leases that have run out, but for those the reaper spares. The time until the store comes to it is one more silence.
    Expired {
        /// Leases that are not reaped now.
        spared: Spared,
    },
    /// The leases of a worker that is known to be gone, because the caller holds its lock.
    Of(WorkerId),
}

impl Reap {
    /// The same, by a store that comes to it only now, some time after it was asked.
    #[must_use]
    pub fn late(mut self, by: Millis) -> Self {
        match &mut self {
            Self::Expired { spared } => spared.after(by, Millis::ZERO),
            Self::Of(_) => {}
        }
        self
    }
}

/// Lease lengths that a reaper spares because it was out of touch with the store too recently: the store may have been away, and
/// whoever holds such a lease must first get the chance to renew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spared(Vec<Span>);

/// The lengths between two bounds, both excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: Millis,
    to: Millis,
}

impl Spared {
    /// A silence no longer than this never counts: nodes at rest look at the store every second.
    pub const SHORT: Millis = Millis::new(1500);

    /// The reaper has always been in touch.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The reaper is not in touch.
    #[must_use]
    pub fn all() -> Self {
        Self::beyond(Millis::ZERO)
    }

    /// The reaper has been in touch for this long.
    #[must_use]
    pub fn beyond(store_contact: Millis) -> Self {
        Self(vec![Span { from: store_contact, to: Millis::MAX }])
    }

    /// The reaper heard nothing for the length of a `silence` that ended some time `ago`. A worker renews three times per
    /// lease: an outage of half a lease leaves it the time to.
    pub fn after(&mut self, silence: Millis, ago: Millis) {
        let to = silence + silence;
        if silence > Self::SHORT && ago < to {
            self.0.push(Span { from: ago, to });
        }
    }

    /// Whether leases of this length are spared.
    #[must_use]
    pub fn holds(&self, length: Millis) -> bool {
        self.0.iter().any(|span| span.from < length && length < span.to)
    }

    /// The bounds, for a database: lengths between a lower and the upper one beside it, both excluded, are spared.
    #[cfg(feature = "postgres")]
    pub(crate) fn bounds(&self) -> (Vec<i64>, Vec<i64>) {
        let bound = |millis: Millis| i64::try_from(millis.get()).unwrap_or(i64::MAX);
        self.0.iter().map(|span| (bound(span.from), bound(span.to))).unzip()
    }
}
