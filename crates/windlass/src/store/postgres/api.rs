//! The contract, method by method: what is gathered, what wakes workers, and which function does the work.

use super::connection::gather::GATHERED;
use super::connection::{health, migrate};
use super::life::{claim, commit, enqueue, gates, leases, names, operations, schedules};
use super::reads::{depths, gates as reads_gates, read, tallies};
use super::upkeep::{expire, prune, texts, transfer};
use super::{PostgresStore, registry};
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, Holder, Import, Imported, JobCopy,
    JobFilter, NodeSetting, Page, Presence, Queue, Reap, Renewed, Replay, Replayed, Result, Schedule, ScheduleChange,
    ScheduleSpec, Scope, Session, Setting, SettingKey, Steps, Token, Transitioned, WorkerId, WorkerLock, WorkerReport,
};
use crate::store::{
    GateName, GateStatus, JobLife, KeyedJob, ParkedJob, Reads, Registry, StoredText, TextChange, TextPlace, Transfer,
};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use windlass_core::gate::Hold;
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
            enqueue::enqueue(&self.inner, &jobs, atomicity).await?
        };
        Ok(self.ringing(stored))
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        claim::claim(&self.inner, &claim).await
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        leases::held(&self.inner, &leases).await
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
            commit::commit(&self.inner, &commits, &ended).await?
        };
        Ok(if is_due { self.ringing(committed) } else { committed })
    }
    /// While one is written, the next is decided and sent.
    fn commits_at_once(&self) -> usize {
        2
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        leases::cancel_requests(&self.inner, &leases).await
    }
    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        leases::renew(&self.inner, &leases, lease_for).await
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned = leases::reap(&self.inner, &reap, limit).await?;
        Ok(if transitioned.is_empty() { transitioned } else { self.ringing(transitioned) })
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        expire::expire(&self.inner, limit).await
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        operations::cancel(&self.inner, scope, &ids).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        operations::replay(&self.inner, scope, &replay).await.map(|replayed| self.ringing(replayed))
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        operations::discard(&self.inner, scope, &discard).await
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        operations::amend(&self.inner, scope, id, change).await.map(|amended| self.ringing(amended))
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        schedules::due_schedules(&self.inner, limit).await
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        schedules::fire(&self.inner, &firing).await.map(|fired| self.ringing(fired))
    }
    async fn prune(&self) -> Result<u64> {
        prune::prune(&self.inner).await
    }
}

#[async_trait]
impl Reads for PostgresStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        read::job(&self.inner, scope, id).await
    }
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        read::jobs_by_id(&self.inner, scope, ids).await
    }
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        read::keyed(&self.inner, tenant, key).await
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        read::jobs(&self.inner, scope, filter, page).await
    }
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
        read::holders(&self.inner, ids).await
    }
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
        reads_gates::parked(&self.inner, ids).await
    }
    async fn parked_before(&self, id: JobId) -> Result<u64> {
        reads_gates::parked_before(&self.inner, id).await
    }
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
        reads_gates::gates(&self.inner, scope, queue, limit).await
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        read::attempts(&self.inner, scope, id, limit).await
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        read::schedule_attempts(&self.inner, scope, schedule, limit).await
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        read::dead_groups(&self.inner, scope, filter, limit).await
    }
    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
        read::dead_series(&self.inner, scope, filter, steps).await
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        depths::depths(&self.inner, scope).await
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        tallies::tallies(&self.inner, scope, since).await
    }
    async fn windows(&self, scope: &Scope, since: &[Timestamp]) -> Result<Vec<Vec<(Queue, Kind, Tally)>>> {
        tallies::windows(&self.inner, scope, since).await
    }
    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
        tallies::series(&self.inner, scope, steps).await
    }
}

#[async_trait]
impl Registry for PostgresStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        registry::queues(&self.inner).await
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        names::find_or_add_queue(&self.inner, tenant, name, executor).await.map(|queue| (*queue).clone())
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        operations::pause_queue(&self.inner, tenant, name, paused).await.map(|count| self.ringing(count))
    }
    async fn installation(&self) -> Result<String> {
        registry::installation(&self.inner).await
    }
    async fn stored_settings(&self) -> Result<Vec<Setting>> {
        registry::stored_settings(&self.inner).await
    }
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
        gates::put_hold(&self.inner, name, hold).await.map(|was_held| self.ringing(was_held))
    }
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
        registry::put_node_settings(&self.inner, node, settings).await
    }
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
        registry::touch_node(&self.inner, node, presence).await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        registry::put_setting(&self.inner, key, value).await
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        schedules::add_schedule(&self.inner, &spec, next_at).await.map(|schedule| self.ringing(schedule))
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        schedules::schedule(&self.inner, scope, id).await
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        schedules::schedules(&self.inner, scope, page).await
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        schedules::change_schedule(&self.inner, scope, id, &change).await.map(|changed| self.ringing(changed))
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        schedules::remove_schedule(&self.inner, scope, id).await
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        registry::put_token(&self.inner, token).await
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        registry::tokens(&self.inner).await
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        registry::revoke_token(&self.inner, id).await
    }
    async fn put_session(&self, session: &Session) -> Result<()> {
        registry::put_session(&self.inner, session).await
    }
    async fn sessions(&self) -> Result<Vec<Session>> {
        registry::sessions(&self.inner).await
    }
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
        registry::remove_session(&self.inner, hash).await
    }
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        Ok(registry::lock_worker(&self.inner, worker).await?.map(|kept| Box::new(kept) as WorkerLock))
    }
    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        registry::report_worker(&self.inner, report).await
    }
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        registry::workers(&self.inner, since).await
    }
    async fn alerts(&self) -> Result<Vec<Alert>> {
        registry::alerts(&self.inner).await
    }
    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        registry::change_alert(&self.inner, &change).await.map(|changed| self.ringing(changed))
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        registry::audit(&self.inner, entry).await
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        registry::audits(&self.inner, limit).await
    }
    async fn texts(&self, after: Option<&TextPlace>, limit: u32) -> Result<Vec<StoredText>> {
        texts::texts(&self.inner, after, limit).await
    }
    async fn replace_texts(&self, changes: Vec<TextChange>) -> Result<u64> {
        texts::replace(&self.inner, &changes).await
    }
    async fn migrate(&self) -> Result<()> {
        migrate::migrate(&self.inner).await
    }
    async fn health(&self) -> Result<Health> {
        health::health(&self.inner).await
    }
    fn clock(&self) -> &Clock {
        &self.inner.clock
    }
    fn notice_time(&self) -> Millis {
        self.inner.notice_time()
    }
    fn wake(&self) -> &Wake {
        &self.inner.wake
    }
}

#[async_trait]
impl Transfer for PostgresStore {
    async fn last_id(&self) -> Result<JobId> {
        transfer::last_id(&self.inner).await
    }
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
        transfer::copies(&self.inner, after, limit).await
    }
    async fn import(&self, import: Import) -> Result<Imported> {
        transfer::import(&self.inner, &import).await.map(|imported| self.ringing(imported))
    }
}
