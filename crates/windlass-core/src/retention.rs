//! Retention: how long the archive keeps a finished job. Pure.

use crate::job::State;
use crate::time::{Millis, Timestamp};
use std::fmt;

/// How long the archive keeps a finished job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Not at all: dropped on finish.
    Drop,
    /// This long.
    For(Millis),
    /// Until an operator removes it.
    Forever,
}

/// Retention of a queue's finished jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Of jobs that succeeded.
    pub succeeded: Keep,
    /// Of jobs that were cancelled.
    pub cancelled: Keep,
    /// Of jobs that failed.
    pub failed: Keep,
}

/// The retention in one setting. For `None` the next level decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionLevel {
    /// Of jobs that succeeded.
    pub succeeded: Option<Keep>,
    /// Of jobs that were cancelled.
    pub cancelled: Option<Keep>,
    /// Of jobs that failed.
    pub failed: Option<Keep>,
}

impl Default for Retention {
    /// Succeeded and cancelled jobs for 7 days, failed ones for 90.
    fn default() -> Self {
        let days = |n: u64| Keep::For(Millis::from_secs(n * 86_400));
        Self { succeeded: days(7), cancelled: days(7), failed: days(90) }
    }
}

impl Retention {
    /// The retention of a queue: field by field the tenant's own setting, else the one for all tenants, else the
    /// default.
    #[must_use]
    pub fn resolve(own: RetentionLevel, shared: RetentionLevel) -> Self {
        let base = Self::default();
        Self {
            succeeded: own.succeeded.or(shared.succeeded).unwrap_or(base.succeeded),
            cancelled: own.cancelled.or(shared.cancelled).unwrap_or(base.cancelled),
            failed: own.failed.or(shared.failed).unwrap_or(base.failed),
        }
    }

    /// How long a job that finished in this state is kept. A live job is kept like a failed one: nothing drops it.
    #[must_use]
    pub const fn of(self, state: State) -> Keep {
        match state {
            State::Succeeded => self.succeeded,
            State::Cancelled => self.cancelled,
            State::Failed | State::Queued | State::Running | State::Retrying => self.failed,
        }
    }
}

impl Keep {
    /// Reads `0`, `forever` or a duration.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "forever" => Some(Self::Forever),
            _ => Millis::parse(text).ok().map(|span| if span.is_zero() { Self::Drop } else { Self::For(span) }),
        }
    }

    /// Whether a job that finished at that time may be removed now.
    #[must_use]
    pub fn is_past(self, finished_at: Timestamp, now: Timestamp) -> bool {
        match self {
            Self::Drop => true,
            Self::For(span) => finished_at + span <= now,
            Self::Forever => false,
        }
    }
}

/// Prints what [`Keep::parse`] reads.
impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("0"),
            Self::For(span) => span.fmt(f),
            Self::Forever => f.write_str("forever"),
        }
    }
}
