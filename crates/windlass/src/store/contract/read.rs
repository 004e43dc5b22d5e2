//! Reading: scopes, filters and pages.

use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, JobId, State, Timestamp};

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
