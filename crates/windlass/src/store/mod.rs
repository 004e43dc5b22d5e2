//! The store: where jobs are kept, and what it promises. Three implementations behave alike: `memory` (the reference
//! model), `sqlite` and `postgres`; one conformance suite holds them to it.

mod claim;
mod commit;
mod error;
pub mod json;
pub mod memory;
mod operations;
#[cfg(feature = "postgres")]
pub mod postgres;
mod read;
mod reap;
pub(crate) mod replay;
mod schedule;
mod settings;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use claim::{Claim, Claimed, Leases, Renewed, Share, WorkerId};
pub use commit::{Commit, Committed, Transitioned};
pub use error::StoreError;
pub use operations::{
    Alert, AlertChange, AlertStatus, Amend, Amended, Audit, Cancelled, Discard, Discarded, Token, WorkerReport,
};
pub use read::{DeadGroup, Depth, JobFilter, Order, Page, Scope};
pub use reap::{Reap, Spared};
pub use replay::{Replay, ReplayOnly, Replayed, Spacing};
pub use schedule::{Fired, Firing, Missed, Overlap, Recurrence, Schedule, ScheduleChange, ScheduleSpec, Trigger};
pub use settings::{Keep, Queue, Retention, SettingKey};

use crate::clock::Clock;
use crate::job::{Job, LeaseId, NewJob};
use crate::random::Random;
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// The most jobs one call takes or returns.
pub const MAX_BATCH: usize = 10_000;

/// Workers not heard of for this long are gone.
pub const WORKERS_FOR: Millis = Millis::from_secs(7 * 86_400);

/// Keeps jobs durably. Every call is one transaction: when it returns `Ok`, what it did survives a crash; when it
/// returns [`StoreError::Unavailable`], nothing happened; [`StoreError::Unknown`] means ask. Calls take and return batches, with a
/// result for each item in the order given, and one item's trouble is not its neighbours'.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync {
    // ── the life of a job ────────────────────────────────────────────────────────────────────────────────────────

    /// Stores new jobs. Registers their queues on first use.
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>>;

    /// Takes due jobs of unpaused queues to `running` under the given leases, durably: turn by turn in the order given, within
    /// a queue by priority, due time, id. Raises each job's attempt number. Never takes a job before its time, nor one whose
    /// `start_by` has passed before its first attempt.
    async fn claim(&self, claim: Claim) -> Result<Claimed>;

    /// The running jobs under these leases: what a claim brought whose outcome was unknown.
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<Job>>;

    /// Applies transitions whose attempts still hold, with ledger, tallies and follow-ups, and deletes the lease rows in
    /// `ended` (leases whose last job is in this batch), but for those of jobs that are to be decided again. A job that
    /// finishes moves to the archive with all its attempts, or away if its queue keeps none; it ends its schedule if that is
    /// one-shot.
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>>;

    /// How many commits one caller had best have under way. One, where a single writer takes them in turn: then the next gathers
    /// more.
    fn commits_at_once(&self) -> usize {
        1
    }

    /// Extends leases that have not been reaped, even if their time has run out, to `lease_for` from now.
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed>;

    /// Decides as lost every job still running under the leases that `reap` names (at most `limit` leases), commits that and
    /// deletes the leases. Each lost attempt is counted once, whoever reaps.
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>>;

    /// Ends, as failed (`expired`), at most `limit` jobs whose `start_by` has passed before their first attempt.
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>>;

    // ── what people do ───────────────────────────────────────────────────────────────────────────────────────────

    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>>;

    /// Sends jobs again, all in one commit: same id, attempts go on counting, failures and crashes start anew, `replays` grows;
    /// a `start_by` that has passed no longer applies.
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>>;

    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>>;

    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended>;

    // ── reads ────────────────────────────────────────────────────────────────────────────────────────────────────

    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>>;

    /// Those of these jobs that are there, live or archived, in any order.
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(self.job(scope, *id).await?);
        }
        Ok(found)
    }

    /// Live and archived jobs by id, filtered, a page at a time.
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>>;

    /// The job's latest `limit` attempts, oldest first. Empty if there is no such job in scope.
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>>;

    /// The latest `limit` attempts of all runs of a schedule, oldest first, with the job of each.
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>>;

    /// Dead letters that match, grouped by fingerprint, the largest group first.
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>>;

    /// How full each queue is.
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>>;

    // ── queues and settings ──────────────────────────────────────────────────────────────────────────────────────

    async fn queues(&self) -> Result<Vec<Queue>>;

    /// The queue's row, made if it is not there.
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue>;

    /// Pauses or resumes every queue of this name in the tenant, whatever its executor. Answers how many there are.
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64>;

    /// All settings. Their values are JSON text.
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>>;

    /// Sets or removes a setting. Retention in a queue's setting takes effect on this node at once, on others within seconds.
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()>;

    // ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────

    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule>;
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>>;
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>>;
    /// `None` if there is no such schedule in scope.
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>>;
    /// Whether there was one. Its runs stay.
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool>;
    /// Unpaused schedules whose `next_at` has come, earliest first; and when the next one will.
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)>;
    /// Fires a schedule once: compare-and-set of its `next_at`, overlap check and enqueue in one transaction.
    async fn fire(&self, firing: Firing) -> Result<Fired>;

    // ── tallies, tokens, workers, alerts, audit ──────────────────────────────────────────────────────────────────

    /// Sums by queue and kind of what was counted since the second a moment lies in, or ever. What was counted long ago is known
    /// to the minute, then to the hour, and counts if its span began then or later (see [`crate::tally`]).
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>>;

    /// The same for several moments, each window for itself, in their order; in one look, if the store can.
    async fn windows(&self, scope: &Scope, since: &[Timestamp]) -> Result<Vec<Vec<(Queue, Kind, Tally)>>> {
        let mut windows = Vec::with_capacity(since.len());
        for moment in since {
            windows.push(self.tallies(scope, Some(*moment)).await?);
        }
        Ok(windows)
    }

    async fn put_token(&self, token: &Token) -> Result<()>;
    async fn tokens(&self) -> Result<Vec<Token>>;
    /// Whether there was an unrevoked one.
    async fn revoke_token(&self, id: &str) -> Result<bool>;

    /// Takes the lock of a worker id for as long as the guard lives, or `None` if another process holds it.
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>>;
    async fn report_worker(&self, report: &WorkerReport) -> Result<()>;
    /// Workers seen at or after `since`.
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>>;

    async fn alerts(&self) -> Result<Vec<Alert>>;
    /// Whether this call made the change: of several nodes, one does.
    async fn change_alert(&self, change: AlertChange) -> Result<bool>;

    async fn audit(&self, entry: &Audit) -> Result<()>;
    /// The latest entries, newest first.
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>>;

    // ── upkeep ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Removes archived jobs past their retention, expired idempotency keys, workers long gone, and folds old tallies into
    /// minutes and hours; a bounded amount of work per call. Answers how many archived jobs went; zero when all is done.
    async fn prune(&self) -> Result<u64>;

    /// Brings the schema up to date. Repeating it changes nothing.
    async fn migrate(&self) -> Result<()>;

    /// Whether the store can be written to, with what a person would want to know.
    async fn health(&self) -> Result<Health>;

    /// The store's clock.
    fn clock(&self) -> &Clock;

    /// Rings when work may have become due: a hint, never a promise.
    fn wake(&self) -> &Wake;
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    pub clock: Clock,
    pub random: Random,
    pub migrations: Migrations,
    /// Postgres: the schema that holds the tables.
    pub schema: String,
    /// Postgres: connections for ordinary statements (the listener and worker locks have their own).
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            random: Random::system(),
            migrations: Migrations::Run,
            schema: "windlass".into(),
            connections: 8,
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

/// Whether a batch stands or falls together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomicity {
    /// Each job by itself.
    Each,
    /// All, or (if any is refused) none: then the others answer [`Enqueued::NotStored`].
    All,
}

/// What became of one new job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    Created {
        id: JobId,
        created_at: Timestamp,
        due_at: Timestamp,
    },
    /// Its idempotency key stands for this job already, with the same kind and payload.
    Existing(JobId),
    /// Its idempotency key stands for this job already, with another kind or payload: refused.
    KeyConflict(JobId),
    /// The database would not take it.
    Refused(String),
    /// A neighbour in an all-or-nothing batch was refused.
    NotStored,
}

impl Enqueued {
    /// The id of the stored job, new or found.
    #[must_use]
    pub const fn id(&self) -> Option<JobId> {
        match self {
            Self::Created { id, .. } | Self::Existing(id) => Some(*id),
            Self::KeyConflict(_) | Self::Refused(_) | Self::NotStored => None,
        }
    }
}

/// Holds a worker id's lock until dropped.
pub type WorkerLock = Box<dyn std::any::Any + Send + Sync>;

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// `sqlite 3.54.1`, `postgres 15.18`, `memory`
    pub engine: String,
    pub schema: u32,
    /// Things to know and do about it: a setting that weakens durability, a clock that is off, stray leases.
    pub warnings: Vec<String>,
}
