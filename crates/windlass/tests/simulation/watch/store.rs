//! A store that is watched: every call that changes something is checked against the record before its answer is passed
//! on. It sits below the faults, so it also sees what callers never learn.

use crate::pass_on::{pass_on_reads, pass_on_registry};
use crate::watch::record::Record;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::Clock;
use windlass::core::gate::Hold;
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::{Attempt, Executor, JobId, Millis, Timestamp};
use windlass::low_level::job::{ClaimedJob, Job, LeaseId, NewJob};
use windlass::low_level::stores::*;
use windlass::low_level::stores::{JobLife, Reads, Registry};
use windlass::low_level::tally::Tally;
use windlass::low_level::wake::Wake;

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
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        self.inner.cancel_requests(leases).await
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

pass_on_reads!(Watched);

pass_on_registry! { Watched,
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        let count = self.inner.pause_queue(tenant, name, paused).await?;
        if !paused {
            self.watch_respacing(tenant, name).await;
        }
        let mut record = self.record();
        let key = (tenant.clone(), name.clone());
        let _ = if paused && count > 0 { record.paused.insert(key) } else { record.paused.remove(&key) };
        Ok(count)
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        self.inner.put_setting(key, value).await
    }
}
