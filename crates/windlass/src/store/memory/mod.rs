//! The reference model: plain maps over the core's rules. It defines how the other stores must behave. Its data is lost
//! when the process ends. Tests run on it.

mod claim;
mod commit;
mod enqueue;
mod operations;
mod read;
mod schedule;
mod state;
mod upkeep;

use super::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadGroup,
    Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, JobFilter, Options, Page, Queue, Reap, Renewed, Replay,
    Replayed, Result, Schedule, ScheduleChange, ScheduleSpec, Scope, SettingKey, Token, Transitioned, WorkerId,
    WorkerLock, WorkerReport,
};
use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{JobLife, Reads, Registry};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        let stored = self.state().enqueue(&jobs, atomicity, self.now());
        self.ringing(stored)
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        Ok(self.state().claim(&claim, self.now()))
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let state = self.state();
        Ok(leases.into_iter().flat_map(|lease| state.held(lease)).collect())
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        let committed = self.state().commit(commits, &ended, self.now());
        self.ringing(committed)
    }
    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        Ok(self.state().renew(&leases, lease_for, self.now()))
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned = self.state().reap(&reap, limit, self.now());
        self.ringing(transitioned)
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        Ok(self.state().expire(limit, self.now()))
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        Ok(self.state().cancel(scope, &ids, self.now()))
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        let replayed = self.state().replay(scope, &replay, self.now());
        self.ringing(replayed)
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        Ok(self.state().discard(scope, &discard, self.now()))
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        let amended = self.state().amend(scope, id, change);
        self.ringing(amended)
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        Ok(self.state().due_schedules(limit, self.now()))
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        let fired = self.state().fire(&firing, self.now());
        self.ringing(fired)
    }
    async fn prune(&self) -> Result<u64> {
        Ok(self.state().prune(self.now()))
    }
}

#[async_trait]
impl Reads for MemoryStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        Ok(self.state().find(scope, id).cloned())
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        Ok(self.state().jobs(scope, filter, page))
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        Ok(self.state().attempts(scope, id, limit))
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        Ok(self.state().schedule_attempts(scope, schedule, limit))
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        Ok(self.state().dead_groups(scope, filter, limit))
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        Ok(self.state().depths(scope, self.now()))
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        Ok(self.state().tallies(scope, since))
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
        let count = self.state().pause(tenant, name, paused);
        self.ringing(count)
    }
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        Ok(self.state().settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        let mut state = self.state();
        match value {
            Some(text) => drop(state.settings.insert(key.clone(), text.to_owned())),
            None => drop(state.settings.remove(key)),
        }
        Ok(())
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        let schedule = self.state().add_schedule(spec, next_at, self.now());
        self.ringing(schedule)
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        Ok(self.state().schedule(scope, id).cloned())
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        Ok(self.state().schedules(scope, page))
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        let changed = self.state().change_schedule(scope, id, change);
        self.ringing(changed)
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        Ok(self.state().remove_schedule(scope, id))
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        self.state().tokens.push(token.clone());
        Ok(())
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        Ok(self.state().tokens.clone())
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        Ok(self.state().revoke_token(id, self.now()))
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
        let changed = self.state().change_alert(&change, self.now());
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
