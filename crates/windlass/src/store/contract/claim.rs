//! Claiming: what a worker asks for, and what it gets.

use crate::job::{ClaimedJob, LeaseId, QueueId};
use std::fmt;
use std::sync::Arc;
use windlass_core::{Millis, Timestamp};

/// The name a worker goes by in leases and the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub Arc<str>);

impl WorkerId {
    /// Makes one.
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
    /// The queues to take from, in this order: whoever asks rotates it, so that none starves another.
    pub shares: Vec<Share>,
    /// At most this many jobs in all.
    pub limit: u32,
    /// At most this many jobs that have lost a worker before (`crashes > 0`): what kills one process must
    /// not take other suspects with it.
    pub suspects: u32,
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
    /// Free slots: the first this many jobs of the turn start at once. An at-most-once job further back is passed over.
    pub slots: u32,
    /// How many more to take ahead of free slots.
    pub ahead: u32,
}

/// What a claim brought.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// Running jobs, turn by turn; within a queue by priority, then due time, then id.
    pub jobs: Vec<ClaimedJob>,
    /// The earliest moment after now at which a waiting job falls due in those of the (unpaused) queues whose turn was not
    /// filled: until then, or until a wake-up, there is nothing more to take from them.
    pub next_due: Option<Timestamp>,
}

/// What became of a worker's leases when it renewed them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Leases that no longer exist: reaped. Their jobs are somebody else's.
    pub lost: Vec<LeaseId>,
    /// Running jobs under these leases whose cancel was requested.
    pub cancel_requested: Vec<windlass_core::JobId>,
}
