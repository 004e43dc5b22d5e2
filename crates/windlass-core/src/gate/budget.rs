//! The retry budget: retries are at most a share of first attempts, so that an outage does not multiply the load.

use super::buckets::Buckets;
use crate::backoff::Ratio;
use crate::time::{Millis, Timestamp};

/// The share of first attempts that may be retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BudgetRule {
    pub share: Ratio,
    /// Retries per second that are always allowed.
    pub minimum: u32,
}

/// The length of a slice; the budget looks back over ten whole slices.
const SLICE: Millis = Millis::from_secs(1);
const SECONDS: u64 = 10;

/// Starts counted for the budget: first attempts and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Budget {
    pub started: Buckets,
}

impl Budget {
    /// When to ask again, if another retry would be too many.
    pub(super) fn refuses(&self, rule: BudgetRule, now: Timestamp) -> Option<Timestamp> {
        let (firsts, retries) = self.started.sums(now);
        let allowed = rule.share.of(u64::from(firsts)).max(u64::from(rule.minimum) * SECONDS);
        if u64::from(retries) < allowed {
            return None;
        }
        // Without a retry in the window there is nothing to wait for, except the next first attempt.
        let leaves = self.started.oldest_leaves(now, |(_, retries)| retries > 0);
        Some(leaves.unwrap_or(now + SLICE).max(now + Millis::new(1)))
    }

    pub(super) fn started(&mut self, is_retry: bool, now: Timestamp) {
        self.started.add(SLICE, now, if is_retry { (0, 1) } else { (1, 0) });
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.started.sums(now) == (0, 0)
    }
}
