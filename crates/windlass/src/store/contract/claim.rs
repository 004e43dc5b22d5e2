//! Claiming: what a worker asks for, and what it gets.

use crate::job::{ClaimedJob, LeaseId, QueueId};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use windlass_core::gate::WaitingFor;
use windlass_core::job::Kind;
use windlass_core::{Millis, Timestamp};

/// The name of a worker in leases and the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub Arc<str>);

impl WorkerId {
    /// Creates an id.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One request for work.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who claims.
    pub worker: WorkerId,
    /// The leases to hold the jobs under.
    pub leases: Leases,
    /// How long the leases last without renewal.
    pub lease_for: Millis,
    /// The queues to take from, in this order. Callers rotate it, so that no queue starves another.
    pub shares: Vec<Share>,
    /// At most this many jobs in all.
    pub limit: u32,
    /// At most this many jobs that have lost a worker before (`crashes > 0`), because a job that kills its process must
    /// not affect other suspects.
    pub suspects: u32,
    /// Only jobs of these kinds, if given. Jobs of other kinds stay as they are, and are not in the way: a claim looks
    /// past a bounded number of them, and a later claim of the same kinds continues there.
    pub kinds: Option<Kinds>,
}

/// The kinds of jobs that a worker knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kinds(Arc<BTreeSet<Arc<str>>>);

impl Kinds {
    /// Whether jobs of this kind are among them.
    #[must_use]
    pub fn contains(&self, kind: &str) -> bool {
        self.0.contains(kind)
    }

    /// Each of them once, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|kind| &**kind)
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(Arc::new(kinds.into_iter().map(|kind| kind.as_str().into()).collect()))
    }
}

/// How claimed jobs are covered by leases.
#[derive(Debug, Clone)]
pub enum Leases {
    /// One lease for the whole batch: in-process workers, which renew and end it together.
    Shared(LeaseId),
    /// One lease per job, taken from this list in claim order: remote workers. At least `limit` of them.
    Each(Vec<LeaseId>),
}

/// What to take from one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which queue.
    pub queue: QueueId,
    /// Free slots: the first this many jobs of the share start at once. An at-most-once job beyond them is skipped.
    pub slots: u32,
    /// How many more to take ahead of free slots.
    pub ahead: u32,
}

/// The result of a claim.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// Running jobs, one share after another; within a queue by priority, then due time, then id.
    pub jobs: Vec<ClaimedJob>,
    /// The earliest time after now at which a waiting job falls due, in those (unpaused) queues whose share was not
    /// filled. Until then, or until a wake-up, there is nothing more to take from them. Now, if a claim of some kinds
    /// ended before it had looked at every due job.
    pub next_due: Option<Timestamp>,
    /// Due jobs that a gate refused in this claim, which wait behind it now.
    pub parked: Vec<Parking>,
}

/// A due job that a gate refused when it was to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parking {
    /// The job.
    pub job: windlass_core::JobId,
    /// What it waits for.
    pub waiting_for: WaitingFor,
    /// Until when, if that is known.
    pub until: Option<Timestamp>,
}

/// The result of renewing a worker's leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Leases that no longer exist because they were reaped. Other workers may run their jobs.
    pub lost: Vec<LeaseId>,
    /// Running jobs under these leases whose cancel was requested.
    pub cancel_requested: Vec<windlass_core::JobId>,
}
