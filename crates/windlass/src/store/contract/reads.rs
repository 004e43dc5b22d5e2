//! Reads of jobs and counts. Reads change nothing.

use super::*;
use crate::job::{Job, LeaseId};
use crate::store::{GateName, GateStatus};
use crate::tally::Tally;
use async_trait::async_trait;
use windlass_core::gate::Gate;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, JobId, Timestamp};

/// A live job that was found by its idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedJob {
    /// The job.
    pub job: JobId,
    /// The lease it runs under; none while it waits.
    pub lease: Option<LeaseId>,
}

/// A waiting job that a gate has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedJob {
    /// The job.
    pub job: JobId,
    /// The gate that it is parked behind.
    pub gate: GateName,
    /// The state of that gate.
    pub state: Gate,
}

/// Reads of jobs and counts. Reads change nothing.
#[async_trait]
pub trait Reads: std::fmt::Debug + Send + Sync {
    /// A job, live or archived.
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>>;

    /// The jobs with these ids that exist, live or archived, in any order.
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(self.job(scope, *id).await?);
        }
        Ok(found)
    }

    /// Who runs those of these jobs that run, in any order. The caller has checked that it may see the jobs.
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>>;

    /// The live job under an idempotency key, and the lease it runs under. `None` if no live job has the key.
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>>;

    /// Those of these jobs that are parked, in any order. The caller has checked that it may see the jobs.
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>>;

    /// How many jobs of the same queue are parked behind the same gate as this one and start before it, counted up to
    /// [`crate::store::MAX_PARKED`]; 0 if it is not parked. Queues that share a gate have no order among them.
    async fn parked_before(&self, id: JobId) -> Result<u64>;

    /// Gates of queues in scope (for all tenants, also those that all tenants share), sorted by name: all of one queue,
    /// or those of every queue that are held or have an open breaker. At most `limit`.
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>>;

    /// Live and archived jobs by id, filtered, a page at a time.
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>>;

    /// The job's latest `limit` attempts, oldest first. Empty if there is no such job in scope.
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>>;

    /// The latest `limit` attempts of all runs of a schedule, oldest first, with the job of each.
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>>;

    /// Dead letters that match, grouped by fingerprint, the largest group first.
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>>;

    /// How many dead letters of each group failed during each step: only steps with any, in any order.
    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>>;

    /// How full each queue is.
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>>;

    /// Sums by queue and kind of what was counted since the second that contains a moment, or ever. Old counts are kept
    /// per minute, then per hour, and are included if their span began then or later (see the module `tally`).
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>>;

    /// The same for several moments, each window by itself, in their order; in one read, if the store can.
    async fn windows(&self, scope: &Scope, since: &[Timestamp]) -> Result<Vec<Vec<(Queue, Kind, Tally)>>> {
        let mut windows = Vec::with_capacity(since.len());
        for moment in since {
            windows.push(self.tallies(scope, Some(*moment)).await?);
        }
        Ok(windows)
    }

    /// What was counted in each step, by queue: only steps and queues with any, in any order. In one read.
    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>>;
}
