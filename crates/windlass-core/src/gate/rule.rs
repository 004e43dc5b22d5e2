//! What one gate enforces.

use super::{BreakerRule, BudgetRule, Rate};

/// How many at once, and how many per time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Limits {
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
}

impl Limits {
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.concurrency.is_none() && self.rate.is_none()
    }
}

/// What one gate enforces. The default enforces nothing; a gate of it can still be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GateRule {
    pub limits: Limits,
    pub breaker: Option<BreakerRule>,
    pub budget: Option<BudgetRule>,
}

impl GateRule {
    /// Whether it limits nothing but how many run at once.
    #[must_use]
    pub const fn counts_only(&self) -> bool {
        self.limits.rate.is_none() && self.breaker.is_none() && self.budget.is_none()
    }

    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.limits.is_none() && self.breaker.is_none() && self.budget.is_none()
    }
}
