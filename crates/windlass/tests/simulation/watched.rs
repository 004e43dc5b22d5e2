//! A store that is watched: every call that changes something is checked against the record before its answer is passed
//! on. It sits below the faults, so it also sees what callers are never told.

use crate::record::Record;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::clock::Clock;
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::{Attempt, Executor, JobId, Millis, Timestamp};
use windlass::job::{ClaimedJob, Job, LeaseId, NewJob};
use windlass::store::*;
use windlass::store::{JobLife, Reads, Registry};
use windlass::tally::Tally;
use windlass::wake::Wake;

pub type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug)]
pub struct Watched {
    pub inner: Arc<dyn Store>,
    record: Mutex<Record>,
}

impl Watched {
    pub fn new(inner: Arc<dyn Store>, none_may_be_lost: bool, retention: Millis) -> Arc<Self> {
        Arc::new(Self { inner, record: Mutex::new(Record { none_may_be_lost, retention, ..Record::default() }) })
    }

    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Timestamp {
        self.inner.clock().now()
    }
}

#[async_trait]
impl JobLife for Watched {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        self.watch_enqueue(jobs, atomicity).await
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.watch_claim(claim).await
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        self.watch_held(leases).await
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        self.watch_commit(commits, ended).await
    }
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        self.watch_renew(worker, leases, lease_for).await
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        self.watch_reap(reap, limit).await
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        self.watch_expire(limit).await
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        self.watch_cancel(scope, ids).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        self.watch_replay(scope, replay).await
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        self.watch_discard(scope, discard).await
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        self.watch_amend(scope, id, change).await
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        self.inner.due_schedules(limit).await
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        self.watch_fire(firing).await
    }
    async fn prune(&self) -> Result<u64> {
        self.watch_prune().await
    }
}

#[async_trait]
impl Reads for Watched {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        self.inner.job(scope, id).await
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
}

#[async_trait]
impl Registry for Watched {
    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner.queues().await
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        self.inner.register_queue(tenant, name, executor).await
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        let count = self.inner.pause_queue(tenant, name, paused).await?;
        let mut record = self.record();
        let key = (tenant.clone(), name.clone());
        let _ = if paused && count > 0 { record.paused.insert(key) } else { record.paused.remove(&key) };
        Ok(count)
    }
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        self.inner.settings().await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        self.inner.put_setting(key, value).await
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        self.inner.add_schedule(spec, next_at).await
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        self.inner.schedule(scope, id).await
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        self.inner.schedules(scope, page).await
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        self.inner.change_schedule(scope, id, change).await
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
        self.inner.lock_worker(worker).await
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
        self.inner.change_alert(change).await
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
        self.inner.clock()
    }
    fn wake(&self) -> &Wake {
        self.inner.wake()
    }
}
