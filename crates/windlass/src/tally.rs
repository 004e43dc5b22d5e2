//! Tallies: counts of what happened. One delta per commit, queue and kind; never a counter updated in place.

use crate::job::QueueId;
use crate::store::Commit;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use windlass_core::job::Kind;
use windlass_core::{Millis, Next, Reason, Status, Timestamp};

/// Deltas, or the seconds they were folded into, are kept at least this long, so that short windows are counted to the
/// second. Then they are folded into minutes, which count in a window if they began in it.
pub const DELTAS_FOR: Millis = Millis::from_secs(15 * 60);
/// Minutes are kept at least this long: longer than the longest window that is shown. Then they are folded into hours.
pub const MINUTES_FOR: Millis = Millis::from_secs(48 * 3600);
/// One second.
pub const SECOND: Millis = Millis::from_secs(1);
/// One minute.
pub const MINUTE: Millis = Millis::from_secs(60);
/// One hour.
pub const HOUR: Millis = Millis::from_secs(3600);

/// Counts before the returned time can be folded into spans of `unit`. Only whole spans are folded.
#[must_use]
pub fn fold_before(now: Timestamp, keep: Millis, unit: Millis) -> Timestamp {
    start_of(now - keep, unit)
}

/// Where a window begins: at the start of a second, so that it does not matter whether that second was folded.
#[must_use]
pub fn window_start(since: Timestamp) -> Timestamp {
    start_of(since, SECOND)
}

/// When the span of `unit` that contains a moment began.
#[must_use]
pub fn start_of(at: Timestamp, unit: Millis) -> Timestamp {
    let unit = unit.get() as i64;
    Timestamp::from_millis(at.as_millis().div_euclid(unit) * unit)
}

macro_rules! tally {
    ($($(#[$doc:meta])* $field:ident),+ $(,)?) => {
        /// Counts of one queue and kind over some time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Tally { $($(#[$doc])* pub $field: i64),+ }

        impl Tally {
            /// The counters' names, in the order of [`Tally::values`]: the columns of the tables.
            pub const COLUMNS: &[&str] = &[$(stringify!($field)),+];

            /// The numbers, in the order of the columns.
            #[must_use]
            pub fn values(&self) -> [i64; Self::COLUMNS.len()] {
                [$(self.$field),+]
            }

            /// Creates counts from numbers in the order of the columns.
            #[must_use]
            pub fn from_values(values: [i64; Self::COLUMNS.len()]) -> Self {
                let [$($field),+] = values;
                Self { $($field),+ }
            }
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

tally! {
    /// Jobs stored.
    enqueued,
    /// Archived jobs made live again.
    replayed,
    /// Attempts that ended, with any outcome.
    attempts,
    /// Attempts that ended and were the first of their allowance.
    first_attempts,
    /// Attempts that ended and were retries.
    retries,
    /// Jobs that succeeded.
    succeeded,
    /// Jobs that failed.
    failed,
    /// Jobs that were cancelled.
    cancelled,
    /// Failed with the reason `exhausted`.
    exhausted,
    /// Failures followed by a retry.
    retried,
    /// Attempts lost with their worker.
    lost,
    /// Snoozed or released attempts.
    postponed,
    /// Retries of jobs that succeeded.
    successful_retries,
    /// Milliseconds of backoff chosen for retries.
    backoff_ms,
    /// Milliseconds attempts took.
    run_ms,
    /// Milliseconds jobs waited beyond their due time until claimed.
    pickup_ms,
}

impl Tally {
    /// What one applied commit adds.
    #[must_use]
    pub fn of(commit: &Commit) -> Self {
        let transition = &commit.transition;
        let counted = match transition.status {
            Status::Succeeded | Status::Failed => 1,
            Status::Snoozed | Status::Released => 0,
        };
        let is_first = i64::from(commit.retry == 0);
        let mut tally = Self {
            attempts: 1,
            first_attempts: counted * is_first,
            retries: counted * (1 - is_first),
            postponed: 1 - counted,
            lost: i64::from(transition.crashes > 0),
            run_ms: commit.finished_at.since(commit.started_at).get() as i64,
            pickup_ms: commit.started_at.since(commit.due_at).get() as i64,
            ..Self::default()
        };
        match transition.next {
            Next::Succeeded => {
                tally.succeeded = 1;
                tally.successful_retries = i64::from(commit.retry);
            }
            Next::Failed(reason) => {
                tally.failed = 1;
                tally.exhausted = i64::from(reason == Reason::Exhausted);
            }
            Next::Cancelled => tally.cancelled = 1,
            Next::Wait { delay, .. } => {
                tally.retried = counted;
                tally.backoff_ms = counted * delay.get() as i64;
            }
        }
        tally
    }

    /// Jobs that became live minus jobs that finished.
    #[must_use]
    pub const fn live(&self) -> i64 {
        self.enqueued + self.replayed - self.succeeded - self.failed - self.cancelled
    }
}

/// The deltas of one transaction, one per queue and kind.
#[derive(Debug, Default)]
pub struct Tallies(BTreeMap<(QueueId, Kind), Tally>);

impl Tallies {
    /// Adds to the delta of one queue and kind.
    pub fn add(&mut self, queue: QueueId, kind: &Kind, delta: Tally) {
        // A batch mostly has one kind, so look it up before cloning the name.
        if let Some(tally) = self.0.get_mut(&(queue, kind.clone())) {
            *tally += delta;
        } else {
            self.0.insert((queue, kind.clone()), delta);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (QueueId, &Kind, &Tally)> {
        self.0.iter().map(|((queue, kind), tally)| (*queue, kind, tally))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
