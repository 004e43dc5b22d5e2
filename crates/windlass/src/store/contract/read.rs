//! Reading: scopes, filters and pages.

use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, JobId, Millis, State, Timestamp};

/// The rows a caller may see and change. Rows outside it do not exist for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All tenants.
    All,
    /// One tenant.
    Tenant(Tenant),
}

impl Scope {
    /// Whether it includes this tenant.
    #[must_use]
    pub fn covers(&self, tenant: &Tenant) -> bool {
        match self {
            Self::All => true,
            Self::Tenant(own) => own == tenant,
        }
    }
}

/// Which jobs to list. Empty lists and `None` filter nothing.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// In one of these states; all states if empty.
    pub states: Vec<State>,
    /// Its queue.
    pub queue: Option<QueueName>,
    /// Its owner.
    pub tenant: Option<Tenant>,
    /// The kind, which chooses a handler.
    pub kind: Option<Kind>,
    /// Class of the last failure.
    pub error_class: Option<String>,
    /// Created (live jobs) or finished (archived jobs) at or after this time.
    pub since: Option<Timestamp>,
    /// The schedule it is a run of.
    pub schedule: Option<JobId>,
    /// The job whose completion this delivery reports.
    pub parent: Option<JobId>,
    /// Who carries out its attempts.
    pub executor: Option<Executor>,
    /// Only failed jobs that no operator has dealt with. Implies the state `failed`.
    pub dead_letters: bool,
    /// Only dead letters of this failure fingerprint.
    pub fingerprint: Option<String>,
}

/// The order in which ids are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The newest first.
    #[default]
    NewestFirst,
    /// The oldest first.
    OldestFirst,
}

/// A page by keyset: ids strictly beyond `after`, in `order`. Stable under writes: rows that existed throughout are
/// neither repeated nor skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Start after this job.
    pub after: Option<JobId>,
    /// The most rows.
    pub limit: u32,
    /// The order of the rows.
    pub order: Order,
}

impl Page {
    /// The first page of the newest.
    #[must_use]
    pub const fn newest(limit: u32) -> Self {
        Self { after: None, limit, order: Order::NewestFirst }
    }

    /// The first page of the oldest.
    #[must_use]
    pub const fn oldest(limit: u32) -> Self {
        Self { after: None, limit, order: Order::OldestFirst }
    }
}

/// Dead letters with similar failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadGroup {
    /// The fingerprint that they share.
    pub fingerprint: String,
    /// Its owner.
    pub tenant: Tenant,
    /// Its queue.
    pub queue: QueueName,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// The class of the error.
    pub error_class: String,
    /// The normalised message they share.
    pub message: String,
    /// How many.
    pub count: u64,
    /// When the first of them failed.
    pub first_seen: Timestamp,
    /// When the last of them failed.
    pub last_seen: Timestamp,
    /// An example: the latest one.
    pub example: JobId,
}

/// Who runs a job, and until when its lease lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The job.
    pub job: JobId,
    /// The worker's id.
    pub worker: String,
    /// When the attempt was claimed.
    pub started_at: Timestamp,
    /// When the lease ends, unless it is renewed.
    pub lease_until: Timestamp,
}

/// The most steps of a series.
const MAX_STEPS: u32 = 1000;

/// A stretch of time in steps of equal length. Counts that were folded into whole minutes or hours belong to the step
/// in which that span began, so steps should start with a minute if they are older than minutes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// When the first step begins.
    pub from: Timestamp,
    /// The length of each.
    pub length: Millis,
    /// How many.
    pub count: u32,
}

impl Steps {
    /// Steps that cover `span` up to `now`. They start at whole multiples of their length.
    #[must_use]
    pub fn until(now: Timestamp, span: Millis, length: Millis) -> Self {
        let length = Millis::new(length.get().max(1));
        let count = u32::try_from(span.get().div_ceil(length.get())).unwrap_or(MAX_STEPS).clamp(1, MAX_STEPS);
        let last = crate::tally::start_of(now, length);
        Self { from: last - Millis::new(length.get() * u64::from(count - 1)), length, count }
    }

    /// The step that contains a moment.
    #[must_use]
    pub fn index_of(&self, at: Timestamp) -> Option<usize> {
        let into = at.as_millis() - self.from.as_millis();
        let index = into.div_euclid((self.length.get() as i64).max(1));
        usize::try_from(index).ok().filter(|index| *index < self.count as usize)
    }

    /// When each step begins.
    pub fn starts(&self) -> impl Iterator<Item = Timestamp> {
        let Self { from, length, count } = *self;
        (0..u64::from(count)).map(move |n| from + Millis::new(length.get() * n))
    }
}

/// How many dead letters of one group failed during one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCount {
    /// The fingerprint of the group.
    pub fingerprint: String,
    /// Its owner.
    pub tenant: Tenant,
    /// Which step.
    pub step: usize,
    /// How many.
    pub count: u64,
}

/// How full a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    /// Which queue.
    pub queue: crate::job::QueueId,
    /// Due and waiting for a worker.
    pub due: u64,
    /// Waiting for their time, first or next.
    pub later: u64,
    /// How many run now.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// Due time of the job that has been due longest.
    pub oldest_due: Option<Timestamp>,
}
