//! The life of a job: stored, claimed, committed, reaped, and changed by operators.

use super::*;
use crate::job::{ClaimedJob, LeaseId, NewJob};
use crate::store::{Atomicity, Enqueued};
use async_trait::async_trait;
use windlass_core::{JobId, Millis, Timestamp};

/// The life of a job: stored, claimed, committed, reaped, and changed by operators.
#[async_trait]
pub trait JobLife: std::fmt::Debug + Send + Sync {
    /// Stores new jobs. Registers their queues on first use.
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>>;

    /// Takes due jobs of unpaused queues to `running` under the given leases, durably: one share after another in the
    /// order given, within a queue by priority, due time, id. Raises each job's attempt number. Never takes a job
    /// before its due time, or a job whose `start_by` has passed before its first attempt.
    async fn claim(&self, claim: Claim) -> Result<Claimed>;

    /// The running jobs under these leases. Used after a claim whose outcome was unknown.
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>>;

    /// Applies transitions whose attempts still hold, with ledger, tallies and follow-ups. Deletes the lease rows in
    /// `ended` (leases whose last job is in this batch), except those of jobs that must be decided again. A job that
    /// finishes moves to the archive with all its attempts, or is removed if its queue keeps none. If it was the run of
    /// a one-shot schedule, the schedule is removed.
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>>;

    /// How many commits one caller should have under way. One if the store has a single writer: then the next commit
    /// collects more.
    fn commits_at_once(&self) -> usize {
        1
    }

    /// Extends leases that have not been reaped, even if their time has run out, to `lease_for` from now.
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed>;

    /// The running jobs under these leases whose cancel was requested. Changes nothing.
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>>;

    /// Decides as lost every job still running under the leases that `reap` names (at most `limit` leases), commits
    /// that and deletes the leases. Each lost attempt is counted once, whichever node reaps it.
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>>;

    /// Ends, as failed (`expired`), at most `limit` jobs whose `start_by` has passed before their first attempt.
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>>;

    /// Ends waiting jobs, and asks running ones to stop.
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>>;

    /// Sends jobs again, all in one commit: same id, attempts continue counting, failures and crashes start at zero,
    /// `replays` grows. A `start_by` that has passed no longer applies.
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>>;

    /// Declares dead letters dealt with.
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>>;

    /// Changes a waiting job.
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended>;

    /// Unpaused schedules whose `next_at` has come, earliest first, and when the next one is due.
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)>;

    /// Fires a schedule once: compare-and-set of its `next_at`, overlap check and enqueue in one transaction.
    async fn fire(&self, firing: Firing) -> Result<Fired>;

    /// Removes archived jobs past their retention, expired idempotency keys and workers not seen for long, and folds
    /// old tallies into minutes and hours. The work per call is bounded. Returns how many archived jobs were removed;
    /// zero when all is done.
    async fn prune(&self) -> Result<u64>;
}
