//! The store's methods: each is passed to the writer or to a reader.

use super::SqliteStore;
use super::connection::readers::Reader;
use super::connection::{connect, lock, migrate};
use super::life::{claim, commit, enqueue, expire, gates, leases, operations, schedule};
use super::reads::settings;
use super::upkeep::{health, prune, texts, transfer};
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, Holder, Import, Imported, JobCopy,
    JobFilter, NodeSetting, Page, Presence, Queue, Reap, Renewed, Replay, Replayed, Result, Schedule, ScheduleChange,
    ScheduleSpec, Scope, Session, Setting, SettingKey, Steps, StoreError, Token, Transitioned, WorkerId, WorkerLock,
    WorkerReport,
};
use crate::store::{
    GateName, GateStatus, JobLife, KeyedJob, ParkedJob, Reads, Registry, StoredText, TextChange, TextPlace, Transfer,
};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use std::sync::PoisonError;
use windlass_core::gate::Hold;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

#[async_trait]
impl JobLife for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.write_all(jobs, move |tx, jobs| enqueue::enqueue(tx, jobs, atomicity)).await
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let passed_over = self.passed_over.clone();
        let taken = self.write(move |tx| claim::claim(tx, &claim, &passed_over)).await?;
        let jobs = match taken.read {
            Some(jobs) => jobs,
            None => self.read_claimed(taken.jobs).await?,
        };
        Ok(Claimed { jobs, next_due: taken.next_due, parked: taken.parked })
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        self.read(move |reader| leases::held(&reader.conn, &mut reader.names, &leases)).await
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        self.write_all(commits, move |tx, commits| commit::commit(tx, commits, &ended)).await
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        self.read(move |reader| leases::cancel_requests(&reader.conn, &leases)).await
    }
    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        self.write(move |tx| leases::renew(tx, &leases, lease_for)).await
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let (clock, asked) = (self.clock.clone(), self.clock.monotonic());
        self.write(move |tx| leases::reap(tx, &reap.late(clock.monotonic() - asked, Millis::ZERO), limit)).await
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        self.write(move |tx| expire::expire(tx, limit)).await
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        let scope = scope.clone();
        self.write(move |tx| operations::cancel(tx, &scope, &ids)).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        let scope = scope.clone();
        self.write_behind(move |tx| operations::replay(tx, &scope, &replay)).await
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        let scope = scope.clone();
        self.write(move |tx| operations::discard(tx, &scope, &discard)).await
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        let scope = scope.clone();
        self.write_behind(move |tx| operations::amend(tx, &scope, id, change)).await
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        let now = self.clock.now();
        self.read(move |reader| reader.due_schedules(limit, now)).await
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        self.write(move |tx| schedule::fire(tx, &firing)).await
    }
    async fn prune(&self) -> Result<u64> {
        let so_far = *self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        let pruned = self.write(move |tx| {
            let mut progress = so_far;
            Ok((prune::prune(tx, &mut progress)?, progress))
        });
        let (gone, progress) = pruned.await?;
        *self.pruned.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        Ok(gone)
    }
}

#[async_trait]
impl Reads for SqliteStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        let scope = scope.clone();
        self.read(move |reader| reader.job(&scope, id)).await
    }
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        let (scope, ids) = (scope.clone(), ids.to_vec());
        self.read(move |reader| {
            let found: Result<Vec<Option<Job>>> = ids.iter().map(|id| reader.job(&scope, *id)).collect();
            Ok(found?.into_iter().flatten().collect())
        })
        .await
    }
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        self.read(move |reader| reader.keyed(&tenant, &key)).await
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| reader.jobs(&scope, &filter, page)).await
    }
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        self.read(move |reader| reader.holders(&ids)).await
    }
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
        let ids = ids.to_vec();
        self.read(move |reader| reader.parked(&ids)).await
    }
    async fn parked_before(&self, id: JobId) -> Result<u64> {
        self.read(move |reader| reader.parked_before(id)).await
    }
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
        let (scope, queue, now) = (scope.clone(), queue.cloned(), self.clock.now());
        self.read(move |reader| reader.gates(&scope, queue.as_ref(), limit, now)).await
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        let scope = scope.clone();
        self.read(move |reader| reader.attempts(&scope, id, limit)).await
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        let scope = scope.clone();
        self.read(move |reader| reader.schedule_attempts(&scope, schedule, limit)).await
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| reader.dead_groups(&scope, &filter, limit)).await
    }
    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| reader.dead_series(&scope, &filter, steps)).await
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        let (scope, now) = (scope.clone(), self.clock.now());
        self.read(move |reader| reader.depths(&scope, now)).await
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        let scope = scope.clone();
        self.read(move |reader| reader.tallies(&scope, since)).await
    }
    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
        let scope = scope.clone();
        self.read(move |reader| reader.series(&scope, steps)).await
    }
}

#[async_trait]
impl Registry for SqliteStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        self.read(Reader::queues).await
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.write(move |tx| {
            let id = tx.names.queue_id(tx.conn, (&tenant, &name, executor), tx.now)?;
            settings::queue_row(tx, id)
        })
        .await
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.write_behind(move |tx| operations::pause_queue(tx, tenant.as_str(), name.as_str(), paused)).await
    }
    async fn installation(&self) -> Result<String> {
        self.read(Reader::installation).await
    }
    async fn stored_settings(&self) -> Result<Vec<Setting>> {
        self.read(Reader::stored_settings).await
    }
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
        let (name, hold) = (name.clone(), hold.cloned());
        self.write(move |tx| gates::put_hold(tx, &name, hold.as_ref())).await
    }
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
        let (node, settings) = (node.to_owned(), settings.to_vec());
        self.write(move |tx| settings::put_node_settings(tx, &node, &settings)).await
    }
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
        let node = node.to_owned();
        self.write(move |tx| settings::touch_node(tx, &node, presence)).await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        let (key, value) = (key.clone(), value.map(str::to_owned));
        self.write(move |tx| settings::put_setting(tx, &key, value.as_deref())).await
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        self.write(move |tx| schedule::add_schedule(tx, spec, next_at)).await
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        let scope = scope.clone();
        self.read(move |reader| reader.schedule(&scope, id)).await
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        let scope = scope.clone();
        self.read(move |reader| reader.schedules(&scope, page)).await
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        let scope = scope.clone();
        self.write(move |tx| schedule::change_schedule(tx, &scope, id, change)).await
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        let scope = scope.clone();
        self.write(move |tx| schedule::remove_schedule(tx, &scope, id)).await
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        let token = token.clone();
        self.write(move |tx| settings::put_token(tx, &token)).await
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        self.read(Reader::tokens).await
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.write(move |tx| settings::revoke_token(tx, &id)).await
    }
    async fn put_session(&self, session: &Session) -> Result<()> {
        let session = session.clone();
        self.write(move |tx| settings::put_session(tx, &session)).await
    }
    async fn sessions(&self) -> Result<Vec<Session>> {
        let now = self.clock.now();
        self.read(move |reader| reader.sessions(now)).await
    }
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
        let hash = *hash;
        self.write(move |tx| settings::remove_session(tx, &hash)).await
    }
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        lock::take(&self.path, worker)
    }
    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        let report = report.clone();
        self.write(move |tx| settings::report_worker(tx, &report)).await
    }
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        self.read(move |reader| reader.workers(since)).await
    }
    async fn alerts(&self) -> Result<Vec<Alert>> {
        self.read(Reader::alerts).await
    }
    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        self.write(move |tx| settings::change_alert(tx, &change)).await
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        let entry = entry.clone();
        self.write(move |tx| settings::audit(tx, &entry)).await
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        self.read(move |reader| reader.audits(limit)).await
    }
    async fn texts(&self, after: Option<&TextPlace>, limit: u32) -> Result<Vec<StoredText>> {
        let after = after.cloned();
        self.read(move |reader| reader.texts(after.as_ref(), limit)).await
    }
    async fn replace_texts(&self, changes: Vec<TextChange>) -> Result<u64> {
        self.write(move |tx| texts::replace(tx, &changes)).await
    }
    async fn migrate(&self) -> Result<()> {
        let (path, now) = (self.path.clone(), self.clock.now());
        let migrating = tokio::task::spawn_blocking(move || migrate::SCHEMA.migrate(&connect::writer(&path)?, now));
        migrating.await.unwrap_or_else(|error| Err(StoreError::unavailable(error)))
    }
    async fn health(&self) -> Result<Health> {
        let clock = self.clock.clone();
        let health = self.write(move |tx| health::health(tx, &clock)).await?;
        self.damage.as_error().map_or(Ok(health), Err)
    }
    async fn verify(&self) -> Result<Vec<String>> {
        self.readers.verify().await
    }
    fn clock(&self) -> &Clock {
        &self.clock
    }
    fn wake(&self) -> &Wake {
        &self.wake
    }
}

#[async_trait]
impl Transfer for SqliteStore {
    async fn last_id(&self) -> Result<JobId> {
        self.read(|reader| reader.last_id()).await
    }
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
        let now = self.clock.now();
        self.read(move |reader| reader.copies(after, limit, now)).await
    }
    async fn import(&self, import: Import) -> Result<Imported> {
        self.write_behind(move |tx| transfer::import(tx, &import)).await
    }
}
