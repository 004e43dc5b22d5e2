//! The contract, verb by verb: what is gathered, what rings, and who does the work.

use super::PostgresStore;
use super::connection::gather::GATHERED;
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadGroup,
    Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, JobFilter, Page, Queue, Reap, Renewed, Replay,
    Replayed, Result, Schedule, ScheduleChange, ScheduleSpec, Scope, SettingKey, Token, Transitioned, WorkerId,
    WorkerLock, WorkerReport,
};
use crate::store::{JobLife, Reads, Registry};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

#[async_trait]
impl JobLife for PostgresStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let is_plain = jobs.iter().all(|job| job.idempotency.is_none());
        let stored = if atomicity == Atomicity::Each && is_plain && jobs.len() <= GATHERED {
            self.gatherers.enqueue(jobs).await?
        } else {
            self.inner.enqueue(&jobs, atomicity).await?
        };
        Ok(self.ringing(stored))
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.inner.claim(&claim).await
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        self.inner.held(&leases).await
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        if commits.is_empty() && ended.is_empty() {
            return Ok(Vec::new());
        }
        // Only what waits again, and what follows, makes work due.
        let is_due = commits.iter().any(|c| !c.follow_ups.is_empty() || c.transition.next.wait().is_some());
        let committed = if commits.len() <= GATHERED {
            self.gatherers.commit(commits, ended).await?
        } else {
            self.inner.commit(&commits, &ended).await?
        };
        Ok(if is_due { self.ringing(committed) } else { committed })
    }
    /// While one is written, the next is decided and sent.
    fn commits_at_once(&self) -> usize {
        2
    }
    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        self.inner.renew(&leases, lease_for).await
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned = self.inner.reap(&reap, limit).await?;
        Ok(if transitioned.is_empty() { transitioned } else { self.ringing(transitioned) })
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        self.inner.expire(limit).await
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        self.inner.cancel(scope, &ids).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        self.inner.replay(scope, &replay).await.map(|replayed| self.ringing(replayed))
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        self.inner.discard(scope, &discard).await
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        self.inner.amend(scope, id, change).await.map(|amended| self.ringing(amended))
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        self.inner.due_schedules(limit).await
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        self.inner.fire(&firing).await.map(|fired| self.ringing(fired))
    }
    async fn prune(&self) -> Result<u64> {
        self.inner.prune().await
    }
}

#[async_trait]
impl Reads for PostgresStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        self.inner.job(scope, id).await
    }
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        self.inner.jobs_by_id(scope, ids).await
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        self.inner.jobs(scope, filter, page).await
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        self.inner.attempts(scope, id, limit).await
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        self.inner.schedule_attempts(scope, schedule, limit).await
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        self.inner.dead_groups(scope, filter, limit).await
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        self.inner.depths(scope).await
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        self.inner.tallies(scope, since).await
    }
    async fn windows(&self, scope: &Scope, since: &[Timestamp]) -> Result<Vec<Vec<(Queue, Kind, Tally)>>> {
        self.inner.windows(scope, since).await
    }
}

#[async_trait]
impl Registry for PostgresStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner.queues().await
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        self.inner.find_or_add_queue(tenant, name, executor).await.map(|queue| (*queue).clone())
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        self.inner.pause_queue(tenant, name, paused).await.map(|count| self.ringing(count))
    }
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        self.inner.settings().await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        self.inner.put_setting(key, value).await
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        self.inner.add_schedule(&spec, next_at).await.map(|schedule| self.ringing(schedule))
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        self.inner.schedule(scope, id).await
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        self.inner.schedules(scope, page).await
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        self.inner.change_schedule(scope, id, &change).await.map(|changed| self.ringing(changed))
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        self.inner.remove_schedule(scope, id).await
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        self.inner.put_token(token).await
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        self.inner.tokens().await
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        self.inner.revoke_token(id).await
    }
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        Ok(self.inner.lock_worker(worker).await?.map(|link| Box::new(link) as WorkerLock))
    }
    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        self.inner.report_worker(report).await
    }
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        self.inner.workers(since).await
    }
    async fn alerts(&self) -> Result<Vec<Alert>> {
        self.inner.alerts().await
    }
    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        self.inner.change_alert(&change).await.map(|changed| self.ringing(changed))
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        self.inner.audit(entry).await
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        self.inner.audits(limit).await
    }
    async fn migrate(&self) -> Result<()> {
        self.inner.migrate().await
    }
    async fn health(&self) -> Result<Health> {
        self.inner.health().await
    }
    fn clock(&self) -> &Clock {
        &self.inner.clock
    }
    fn wake(&self) -> &Wake {
        &self.inner.wake
    }
}
