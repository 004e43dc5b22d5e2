//! Timekeeping: what a reading of a clock means. Compared with the time since boot, which only runs forward, a clock
//! runs on, drifts a little, or was set. Pure: readings come in as values.

use crate::time::{Millis, Timestamp};

/// A difference of up to this is drift, which is followed without a word. Anything larger is a step.
pub const DRIFT: i64 = 100;

/// What a clock showed at some moment between two readings of the time since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// What the clock showed.
    pub time: Timestamp,
    /// The time since boot before the clock was read.
    pub asked: Millis,
    /// The time since boot after it was read.
    pub answered: Millis,
}

/// How far a clock is ahead of the time since boot, in milliseconds: a range, because reading a clock takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    lowest: i64,
    highest: i64,
}

/// A clock was set, by this many milliseconds. Negative: it was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step(pub i64);

impl Course {
    /// What one sighting says.
    #[must_use]
    pub fn seen(sighting: Sighting) -> Self {
        let ahead = |boot: Millis| sighting.time.as_millis().saturating_sub(signed(boot));
        let (lowest, highest) = (ahead(sighting.answered), ahead(sighting.asked));
        Self { lowest, highest: highest.max(lowest) }
    }

    /// How far the clock is ahead of the time since boot. The lowest value of the range: nothing runs early.
    #[must_use]
    pub const fn ahead(self) -> i64 {
        self.lowest
    }

    /// Narrows the range with another sighting, or starts anew if the clock was set between the two.
    #[must_use]
    pub fn follow(self, sighting: Sighting) -> (Self, Option<Step>) {
        let seen = Self::seen(sighting);
        let (lowest, highest) = (self.lowest.max(seen.lowest), self.highest.min(seen.highest));
        if lowest <= highest {
            return (Self { lowest, highest }, None);
        }
        let step = if seen.lowest > self.highest { seen.lowest - self.highest } else { seen.highest - self.lowest };
        (seen, (step.abs() > DRIFT).then_some(Step(step)))
    }
}

/// The time that a machine slept between two readings of its clocks: the time since boot goes on, the time awake does
/// not.
#[must_use]
pub fn slept(since_boot: Millis, awake: Millis) -> Option<Millis> {
    let slept = since_boot - awake;
    (slept > Millis::from_secs(1)).then_some(slept)
}

/// What a waiting job's due time came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it is due.
    pub due_at: Timestamp,
    /// When its last attempt ended, and when the job was to run again. `None` before the first one.
    pub ended: Option<(Timestamp, Option<Timestamp>)>,
}

impl Waiting {
    /// When a job is due now that the clock was set back, if a faster clock gave it a later time: at once if it was
    /// stored to run at once, after its delay if its last attempt ended by that clock. `None` if its time stays,
    /// because the clock was right or the time was asked for.
    #[must_use]
    pub fn due_after_set_back(self, now: Timestamp) -> Option<Timestamp> {
        let is_ahead = |moment: Timestamp| moment.as_millis().saturating_sub(now.as_millis()) > DRIFT;
        match self.ended {
            Some((ended_at, Some(next))) if is_ahead(ended_at) && next == self.due_at => {
                Some(now + next.since(ended_at))
            }
            None if is_ahead(self.created_at) && self.due_at <= self.created_at => Some(now),
            Some(_) | None => None,
        }
    }
}

fn signed(boot: Millis) -> i64 {
    i64::try_from(boot.get()).unwrap_or(i64::MAX)
}
