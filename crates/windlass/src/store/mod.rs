//! The store: where jobs are kept, and its contract. Three implementations behave the same: `memory` (the reference
//! model), `sqlite` and `postgres`. One conformance suite tests all of them.

// Some items are used only by the databases.
#[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
mod contract;
mod error;
#[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
pub(crate) mod gates;
pub mod json;
pub mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod passed_over;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use contract::{
    Alert, AlertChange, AlertStatus, Amend, Amended, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, DeadRuns, Depth, Discard, Discarded, Fired, Firing, HoldRequest, Holder, Import, Imported, JobCopy,
    JobFilter, JobLife, Keep, KeyHeld, KeyedJob, Kinds, Leases, Missed, NODE_FOR, NodeSetting, Order, Origin, Overlap,
    Page, ParkedJob, Parking, Presence, Queue, Reads, Reap, Recurrence, Registry, Renewed, Replay, ReplayOnly,
    Replayed, Retention, SUPERSEDED, Schedule, ScheduleChange, ScheduleSpec, Scope, Session, Setting, SettingKey,
    SettingSource, Share, Spacing, Spared, Steps, StoredText, TextChange, TextPlace, Token, Transfer, Transitioned,
    Trigger, WorkerId, WorkerReport,
};
pub(crate) use contract::{DISCARDED_BY_RULE, IMPORT, in_force, replay};
pub use error::StoreError;
pub use gates::{GateName, GateStatus, MAX_PARKED};

use crate::clock::Clock;
use crate::random::Random;
use windlass_core::{JobId, Millis, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// The most jobs one call takes or returns.
pub const MAX_BATCH: usize = 10_000;

/// Workers that have not reported for this long are removed.
pub const WORKERS_FOR: Millis = Millis::from_secs(7 * 86_400);

/// Keeps jobs durably. Every call is one transaction. When it returns `Ok`, its effects survive a crash. After
/// [`StoreError::Unavailable`], nothing happened. After [`StoreError::Unknown`], ask what happened. Calls take and
/// return batches, with a result for each item in the order given, and a failed item does not affect the others.
pub trait Store: JobLife + Reads + Registry + Transfer {}

impl<T: JobLife + Reads + Registry + Transfer + ?Sized> Store for T {}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The clock for all times.
    pub clock: Clock,
    /// The source of random numbers.
    pub random: Random,
    /// Who brings the schema up to date.
    pub migrations: Migrations,
    /// Postgres: the schema that holds the tables.
    pub schema: String,
    /// Postgres: connections for ordinary statements (the listener and worker locks have their own).
    pub connections: usize,
    /// The keys that values are sealed with; none: they are in clear.
    #[cfg(feature = "sealing")]
    pub key_ring: crate::sealing::KeyRing,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            random: Random::system(),
            migrations: Migrations::Run,
            schema: "windlass".into(),
            connections: 8,
            #[cfg(feature = "sealing")]
            key_ring: crate::sealing::KeyRing::default(),
        }
    }
}

/// Who brings the schema up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migrations {
    /// Opening the store does.
    Run,
    /// The operator does, with `windlass migrate`; opening an older schema is refused.
    LeaveToOperator,
}

/// Whether a batch is stored as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomicity {
    /// Each job by itself.
    Each,
    /// All or, if any is refused, none: then the others return [`Enqueued::NotStored`].
    All,
}

/// The result for one new job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It was stored.
    Created {
        /// Its id.
        id: JobId,
        /// When it was stored.
        created_at: Timestamp,
        /// When it is due.
        due_at: Timestamp,
    },
    /// Its idempotency key already belongs to this job, with the same kind and payload.
    Existing(JobId),
    /// Its idempotency key already belongs to this job, with another kind or payload: refused.
    KeyConflict(JobId),
    /// The database refused it.
    Refused(String),
    /// A quota of its tenant refused it.
    OverQuota(windlass_core::quota::OverQuota),
    /// Another job of an all-or-nothing batch was refused.
    NotStored,
}

impl Enqueued {
    /// The id of the stored job, new or found.
    #[must_use]
    pub const fn id(&self) -> Option<JobId> {
        match self {
            Self::Created { id, .. } | Self::Existing(id) => Some(*id),
            Self::KeyConflict(_) | Self::Refused(_) | Self::OverQuota(_) | Self::NotStored => None,
        }
    }
}

/// Holds a worker id's lock until dropped.
pub type WorkerLock = Box<dyn std::any::Any + Send + Sync>;

/// A store's report about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// `sqlite 3.54.1`, `postgres 15.18`, `memory`
    pub engine: String,
    /// The version of the schema.
    pub schema: u32,
    /// Warnings: a setting that weakens durability, a wrong clock, stray leases.
    pub warnings: Vec<String>,
}
