//! The reference model: plain maps over the core's rules. It defines how the other stores must behave. Its data is lost
//! when the process ends. Tests run on it.

mod claim;
mod commit;
mod enqueue;
mod gates;
mod operations;
mod read;
mod schedule;
mod settings;
mod state;
mod transfer;
mod upkeep;

use super::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, Holder, Import, Imported, JobCopy,
    JobFilter, NodeSetting, Options, Page, Presence, Queue, Reap, Renewed, Replay, Replayed, Result, Schedule,
    ScheduleChange, ScheduleSpec, Scope, Session, Setting, SettingKey, Steps, Token, Transitioned, WorkerId,
    WorkerLock, WorkerReport,
};
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{GateName, GateStatus, JobLife, KeyedJob, ParkedJob, Reads, Registry, Transfer};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_core::gate::Hold;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

/// Jobs in memory.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Clock,
    wake: Wake,
    locks: Arc<Mutex<Vec<WorkerId>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(options: Options) -> Arc<Self> {
        let state = Mutex::new(State::new(options.random));
        Arc::new(Self { state, clock: options.clock, wake: Wake::default(), locks: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.clock.set_ahead(self.clock.look());
        self.clock.now()
    }

    /// Wakes workers after a call that may make work due.
    fn ringing<T>(&self, done: T) -> Result<T> {
        self.wake.ring();
        Ok(done)
    }
}

#[async_trait]
impl JobLife for MemoryStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        let stored = enqueue::enqueue(&mut self.state(), &jobs, atomicity, self.now());
        self.ringing(stored)
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        Ok(claim::claim(&mut self.state(), &claim, self.now()))
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let state = self.state();
        Ok(leases.into_iter().flat_map(|lease| claim::held(&state, lease)).collect())
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        let committed = commit::commit(&mut self.state(), commits, &ended, self.now());
        self.ringing(committed)
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        Ok(claim::cancel_requests(&self.state(), &leases))
    }
    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        Ok(claim::renew(&mut self.state(), &leases, lease_for, self.now()))
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned =
            commit::reap(&mut self.state(), &reap.after_step(self.clock.since_step()), limit, self.now());
        self.ringing(transitioned)
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        Ok(commit::expire(&mut self.state(), limit, self.now()))
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        Ok(operations::cancel(&mut self.state(), scope, &ids, self.now()))
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        let replayed = operations::replay(&mut self.state(), scope, &replay, self.now());
        self.ringing(replayed)
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        Ok(operations::discard(&mut self.state(), scope, &discard, self.now()))
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        let amended = operations::amend(&mut self.state(), scope, id, change);
        self.ringing(amended)
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        Ok(schedule::due_schedules(&self.state(), limit, self.now()))
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        let fired = schedule::fire(&mut self.state(), &firing, self.now());
        self.ringing(fired)
    }
    async fn prune(&self) -> Result<u64> {
        Ok(upkeep::prune(&mut self.state(), self.now()))
    }
}

#[async_trait]
impl Reads for MemoryStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        Ok(self.state().find(scope, id).cloned())
    }
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        Ok(read::keyed(&self.state(), tenant, key))
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        Ok(read::jobs(&self.state(), scope, filter, page))
    }
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
        Ok(read::holders(&self.state(), ids))
    }
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
        Ok(gates::parked(&self.state(), ids))
    }
    async fn parked_before(&self, id: JobId) -> Result<u64> {
        Ok(gates::parked_before(&self.state(), id))
    }
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
        Ok(gates::gates(&self.state(), scope, queue, limit, self.now()))
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        Ok(read::attempts(&self.state(), scope, id, limit))
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        Ok(read::schedule_attempts(&self.state(), scope, schedule, limit))
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        Ok(read::dead_groups(&self.state(), scope, filter, limit))
    }

    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
        Ok(read::dead_series(&self.state(), scope, filter, steps))
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        Ok(read::depths(&self.state(), scope, self.now()))
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        Ok(read::tallies(&self.state(), scope, since))
    }

    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
        Ok(read::series(&self.state(), scope, steps))
    }
}

#[async_trait]
impl Registry for MemoryStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        Ok(self.state().queues.clone())
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        Ok(self.state().queue(tenant, name, executor, self.now()).clone())
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        let count = operations::pause(&mut self.state(), tenant, name, paused, self.now());
        self.ringing(count)
    }
    async fn installation(&self) -> Result<String> {
        Ok(self.state().installation.clone())
    }
    async fn stored_settings(&self) -> Result<Vec<Setting>> {
        Ok(self.state().settings.values().map(|named| named.setting.clone()).collect())
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        settings::put(&mut self.state(), key, value, self.now());
        Ok(())
    }
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
        settings::put_of_node(&mut self.state(), node, settings, self.now());
        Ok(())
    }
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
        settings::touch(&mut self.state(), node, presence, self.now());
        Ok(())
    }
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
        let was_held = gates::put_hold(&mut self.state(), name, hold, self.now());
        self.ringing(was_held)
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        let schedule = schedule::add_schedule(&mut self.state(), spec, next_at, self.now());
        self.ringing(schedule)
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        Ok(schedule::schedule(&self.state(), scope, id).cloned())
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        Ok(schedule::schedules(&self.state(), scope, page))
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        let changed = schedule::change_schedule(&mut self.state(), scope, id, change);
        self.ringing(changed)
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        Ok(schedule::remove_schedule(&mut self.state(), scope, id))
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        operations::put_token(&mut self.state(), token);
        Ok(())
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        Ok(self.state().tokens.clone())
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        Ok(operations::revoke_token(&mut self.state(), id, self.now()))
    }
    async fn put_session(&self, session: &Session) -> Result<()> {
        let now = self.now();
        let sessions = &mut self.state().sessions;
        sessions.retain(|old| old.expires_at > now && old.hash != session.hash);
        sessions.push(session.clone());
        Ok(())
    }
    async fn sessions(&self) -> Result<Vec<Session>> {
        let now = self.now();
        Ok(self.state().sessions.iter().filter(|session| session.expires_at > now).cloned().collect())
    }
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
        let sessions = &mut self.state().sessions;
        let before = sessions.len();
        sessions.retain(|session| session.hash != *hash);
        Ok(sessions.len() < before)
    }
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        let mut held = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains(worker) {
            return Ok(None);
        }
        held.push(worker.clone());
        Ok(Some(Box::new(Lock { worker: worker.clone(), held: self.locks.clone() })))
    }
    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        self.state().workers.insert(report.worker.clone(), report.clone());
        Ok(())
    }
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        Ok(self.state().workers.values().filter(|w| w.seen_at >= since).cloned().collect())
    }
    async fn alerts(&self) -> Result<Vec<Alert>> {
        Ok(self.state().alerts.values().cloned().collect())
    }
    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        let changed = operations::change_alert(&mut self.state(), &change, self.now());
        self.ringing(changed)
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        self.state().audits.push(entry.clone());
        Ok(())
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        Ok(self.state().audits.iter().rev().take(limit as usize).cloned().collect())
    }
    async fn migrate(&self) -> Result<()> {
        Ok(())
    }
    async fn health(&self) -> Result<Health> {
        let warnings = vec!["jobs are kept in memory and end with the process".into()];
        Ok(Health { engine: "memory".into(), schema: 0, warnings })
    }
    fn clock(&self) -> &Clock {
        &self.clock
    }
    fn wake(&self) -> &Wake {
        &self.wake
    }
}

#[async_trait]
impl Transfer for MemoryStore {
    async fn last_id(&self) -> Result<JobId> {
        Ok(JobId(self.state().last_id))
    }
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
        Ok(transfer::copies(&self.state(), after, limit, self.now()))
    }
    async fn import(&self, import: Import) -> Result<Imported> {
        let imported = transfer::import(&mut self.state(), import, self.now());
        self.ringing(imported)
    }
}

/// Held while a worker of this name is alive.
struct Lock {
    worker: WorkerId,
    held: Arc<Mutex<Vec<WorkerId>>>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).retain(|w| *w != self.worker);
    }
}
