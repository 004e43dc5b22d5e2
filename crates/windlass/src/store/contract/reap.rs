//! Reaping: which leases are over.

use super::WorkerId;
use windlass_core::Millis;

/// Whose leases to reap.
#[derive(Debug, Clone)]
pub enum Reap {
    /// Expired leases, except those the reaper spares. Waiting for the store counts as lost contact.
    Expired {
        /// Leases that are not reaped now.
        spared: Spared,
    },
    /// The leases of a worker that is known to be gone, because the caller holds its lock.
    Of(WorkerId),
}

impl Reap {
    /// The same request of a reaper that saw the store's clock being set this long ago. Until a lease's length has
    /// passed since then, its end was written by the old time.
    #[must_use]
    pub fn after_step(mut self, ago: Option<Millis>) -> Self {
        if let (Self::Expired { spared }, Some(ago)) = (&mut self, ago) {
            spared.0.push(Span { from: ago, to: Millis::MAX });
        }
        self
    }

    /// The same request, executed by the store some time after it was made. `notice` as in [`Spared::after`].
    #[must_use]
    pub fn late(mut self, by: Millis, notice: Millis) -> Self {
        match &mut self {
            Self::Expired { spared } => spared.after(by, Millis::ZERO, notice),
            Self::Of(_) => {}
        }
        self
    }
}

/// Lease lengths that a reaper spares because it lost contact with the store too recently. The store may have been
/// unreachable, so holders of such leases must first get the chance to renew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spared(Vec<Span>);

/// The lengths between two bounds, both excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: Millis,
    to: Millis,
}

impl Spared {
    /// A silence no longer than this never counts, because idle nodes contact the store every second.
    pub const SHORT: Millis = Millis::new(1500);

    /// The reaper was always in contact.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The reaper is not in contact.
    #[must_use]
    pub fn all() -> Self {
        Self::beyond(Millis::ZERO)
    }

    /// The reaper has been in contact for this long.
    #[must_use]
    pub fn beyond(store_contact: Millis) -> Self {
        Self(vec![Span { from: store_contact, to: Millis::MAX }])
    }

    /// The reaper had no contact during a `silence` that ended some time `ago`. A worker renews three times per lease,
    /// so after an outage of half a lease it still has time to renew. For other nodes the silence may last longer, by
    /// the time they need to `notice` that the store is back.
    pub fn after(&mut self, silence: Millis, ago: Millis, notice: Millis) {
        let (longest, from) = (silence + notice, ago - notice);
        let to = longest + longest;
        if silence > Self::SHORT && from < to {
            self.0.push(Span { from, to });
        }
    }

    /// Whether leases of this length are spared.
    #[must_use]
    pub fn holds(&self, length: Millis) -> bool {
        self.0.iter().any(|span| span.from < length && length < span.to)
    }

    /// The bounds, for a database. Lengths between a lower bound and its upper bound, both excluded, are spared.
    #[cfg(feature = "postgres")]
    pub(crate) fn bounds(&self) -> (Vec<i64>, Vec<i64>) {
        let bound = |millis: Millis| i64::try_from(millis.get()).unwrap_or(i64::MAX);
        self.0.iter().map(|span| (bound(span.from), bound(span.to))).unzip()
    }
}
