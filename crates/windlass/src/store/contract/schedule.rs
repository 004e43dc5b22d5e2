//! Schedules as a store keeps them. Core computes when they fire; the store ensures that each firing happens once.

use crate::job::NewJob;
use windlass_core::job::Tenant;
use windlass_core::{JobId, Timestamp};

/// A schedule: a cadence and the job it enqueues.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Its id, drawn from the same sequence as job ids.
    pub id: JobId,
    /// What the caller asked for.
    pub spec: ScheduleSpec,
    /// Whether it is paused.
    pub paused: bool,
    /// The next nominal firing; `None` when there is none left.
    pub next_at: Option<Timestamp>,
    /// The last nominal firing.
    pub last_at: Option<Timestamp>,
    /// The run enqueued last.
    pub last_job: Option<JobId>,
    /// The run that failed last.
    pub last_dead: Option<JobId>,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// What a caller specifies for a schedule.
#[derive(Debug, Clone)]
pub struct ScheduleSpec {
    /// Its owner.
    pub tenant: Tenant,
    /// A cron line or `every 30s`, as core's cadence reads it.
    pub cadence: String,
    /// IANA time zone of a cron line.
    pub zone: String,
    /// When it fires.
    pub recurrence: Recurrence,
    /// What happens when the previous run has not ended.
    pub overlap: Overlap,
    /// What happens to missed firings.
    pub missed: Missed,
    /// Which of its failed runs stay dead letters.
    pub dead_letters: DeadRuns,
    /// The job each firing enqueues. Its `run_at`, `schedule` and idempotency key are set by the firing.
    pub template: NewJob,
}

/// Whether a schedule continues after its first firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// It fires repeatedly.
    Recurring,
    /// It is removed when its run has ended; the run stays in history.
    OneShot,
}

/// What to do when the last run is still live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// The firing is skipped.
    Skip,
    /// Both run.
    Allow,
}

/// What to do with firings that were missed because no node was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// One run replaces all of them.
    One,
    /// They are skipped.
    Skip,
}

/// Which failed runs of a recurring schedule stay dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadRuns {
    /// The latest. The one before it is discarded, with the reason `superseded`, in the commit that ends the run.
    Latest,
    /// All.
    All,
}

/// Why a dead letter was discarded: a later run of its schedule failed too.
pub const SUPERSEDED: &str = "superseded";

impl ScheduleSpec {
    /// Whether a failed run takes the place of the one that failed before it.
    #[must_use]
    pub fn supersedes(&self) -> bool {
        self.recurrence == Recurrence::Recurring && self.dead_letters == DeadRuns::Latest
    }
}

macro_rules! word_pair {
    ($type:ident, $a:ident = $wa:literal, $b:ident = $wb:literal) => {
        impl $type {
            /// The name of the value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    Self::$a => $wa,
                    Self::$b => $wb,
                }
            }

            /// Parses a name.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $wa => Some(Self::$a),
                    $wb => Some(Self::$b),
                    _ => None,
                }
            }
        }
    };
}
word_pair!(Recurrence, Recurring = "recurring", OneShot = "one_shot");
word_pair!(Overlap, Skip = "skip", Allow = "allow");
word_pair!(Missed, One = "one", Skip = "skip");
word_pair!(DeadRuns, Latest = "latest", All = "all");

/// One firing, to happen at most once on any number of nodes.
#[derive(Debug, Clone)]
pub struct Firing {
    /// The schedule it is a run of.
    pub schedule: JobId,
    /// What made it fire.
    pub trigger: Trigger,
    /// The run to enqueue; `None` skips this firing.
    pub job: Option<NewJob>,
}

/// What made a schedule fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The cadence. Fires only if the schedule's `next_at` is still `nominal` and it is not paused; then sets
    /// `next_at`.
    Due {
        /// The time it was due for.
        nominal: Timestamp,
        /// When it fires next.
        next_at: Option<Timestamp>,
    },
    /// An operator. Fires now, whatever the cadence says, even if the schedule is paused or its last run is live.
    Operator,
}

/// The result of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// A job was stored.
    Enqueued(JobId),
    /// The firing is used up, but no run was enqueued: the last run is live, or the firing was to be skipped.
    Skipped,
    /// Another node fired it, or it was changed, paused or removed meanwhile: nothing happened.
    NotOurs,
}

/// A change to a schedule. `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct ScheduleChange {
    /// What was asked for.
    pub spec: Option<ScheduleSpec>,
    /// Whether it is paused.
    pub paused: Option<bool>,
    /// Set whenever the cadence changes or the schedule resumes.
    pub next_at: Option<Option<Timestamp>>,
}
