//! Holds: a time until which nothing of a queue or key starts.

use super::CLOCK_SET_BACK;
use crate::time::Timestamp;
use std::fmt;

/// A time until which nothing starts, who set it and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// When it was set.
    pub since: Timestamp,
    pub until: Timestamp,
    pub origin: HoldOrigin,
    /// Why, as text for the operator.
    pub reason: String,
}

/// Who set a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOrigin {
    /// An operator, by name.
    Operator(String),
    /// An answer with `Retry-After`.
    RetryAfter,
    /// An error rule.
    Rule,
}

impl HoldOrigin {
    /// Whether Windlass set the hold itself.
    #[must_use]
    pub const fn is_automatic(&self) -> bool {
        match self {
            Self::Operator(_) => false,
            Self::RetryAfter | Self::Rule => true,
        }
    }

    /// Its word: `operator`, `retryAfter` or `rule`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Operator(_) => "operator",
            Self::RetryAfter => "retryAfter",
            Self::Rule => "rule",
        }
    }
}

impl fmt::Display for HoldOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(by) => write!(f, "operator {by}"),
            Self::RetryAfter => f.write_str("Retry-After"),
            Self::Rule => f.write_str("error rule"),
        }
    }
}

impl Hold {
    /// Whether it holds now. An operator names a time; an automatic hold is a span, which a clock that was set back
    /// must not lengthen.
    pub(super) fn is_in_force(&self, now: Timestamp) -> bool {
        now < self.until && !(self.origin.is_automatic() && self.since > now + CLOCK_SET_BACK)
    }
}
