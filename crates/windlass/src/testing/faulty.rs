//! A store with faults that a test chooses: every call can be refused, or done without its caller learning it.

use crate::clock::Clock;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, Holder, JobFilter, NodeSetting, Page,
    Presence, Queue, Reap, Renewed, Replay, Replayed, Schedule, ScheduleChange, ScheduleSpec, Scope, Session, Setting,
    SettingKey, Steps, Store, StoreError, Token, Transitioned, WorkerId, WorkerLock, WorkerReport,
};
use crate::store::{
    GateName, GateStatus, Import, Imported, JobCopy, JobLife, KeyedJob, ParkedJob, Reads, Registry, Transfer,
};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::gate::Hold;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault: the call goes through.
    None,
    /// Refused; the call was not done.
    Unavailable,
    /// Not done, and the caller gets an unknown outcome.
    UnknownNotDone,
    /// Done, and the caller gets an unknown outcome.
    UnknownDone,
    /// A claim is done only after the next call of `held`. Other calls are not done. The caller gets an unknown
    /// outcome.
    UnknownLate,
}

type Chooser = dyn Fn(&'static str) -> Fault + Send + Sync;

/// Passes calls on to another store, with faults.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    choose: Mutex<Arc<Chooser>>,
    /// Never signalled: used for subscribers that must get no wake-ups.
    never_woken: Wake,
    loses_wake_ups: AtomicBool,
    /// A claim that will be done after the next call of `held`.
    late: Mutex<Option<Claim>>,
    in_flight: AtomicUsize,
}

/// A call that has not returned yet.
struct Call<'a>(&'a AtomicUsize);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl FaultyStore {
    /// A store without faults, until a test chooses some.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let choose: Arc<Chooser> = Arc::new(|_| Fault::None);
        let (never_woken, loses_wake_ups) = (Wake::default(), AtomicBool::new(false));
        let (late, in_flight) = (Mutex::new(None), AtomicUsize::new(0));
        Arc::new(Self { inner, choose: Mutex::new(choose), never_woken, loses_wake_ups, late, in_flight })
    }

    /// From now on `choose` decides, by the name of each call, which fault it gets.
    pub fn choose(&self, choose: impl Fn(&'static str) -> Fault + Send + Sync + 'static) {
        *self.choose.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(choose);
    }

    /// From now on every call gets this fault.
    pub fn always(&self, fault: Fault) {
        self.choose(move |_| fault);
    }

    /// From now on new subscribers get no wake-ups.
    pub fn lose_wake_ups(&self) {
        self.loses_wake_ups.store(true, Ordering::Relaxed);
    }

    /// How many calls have not returned yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    fn begin(&self) -> Call<'_> {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Call(&self.in_flight)
    }

    /// Does the claim that was answered as unknown before.
    async fn claim_late(&self) -> Result<()> {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(claim) = late {
            self.inner.claim(claim).await?;
        }
        Ok(())
    }

    fn fault(&self, call: &'static str) -> Fault {
        let choose = self.choose.lock().unwrap_or_else(PoisonError::into_inner).clone();
        choose(call)
    }
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FaultyStore({:?})", self.inner)
    }
}

macro_rules! faulty {
    ($self:ident, $name:literal, $call:expr) => {
        faulty!($self, $self.fault($name) => $call)
    };
    ($self:ident, $fault:expr => $call:expr) => {{
        let _call = $self.begin();
        match $fault {
            Fault::None => $call.await,
            Fault::Unavailable => Err(StoreError::unavailable("a fault of the test's choice")),
            Fault::UnknownNotDone | Fault::UnknownLate => Err(StoreError::unknown("a fault of the test's choice")),
            Fault::UnknownDone => {
                $call.await?;
                Err(StoreError::unknown("a fault of the test's choice"))
            }
        }
    }};
}

#[async_trait]
impl JobLife for FaultyStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        faulty!(self, "enqueue", self.inner.enqueue(jobs, atomicity))
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let fault = self.fault("claim");
        if fault == Fault::UnknownLate {
            *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim.clone());
        }
        faulty!(self, fault => self.inner.claim(claim))
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let held = faulty!(self, "held", self.inner.held(leases));
        self.claim_late().await?;
        held
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        faulty!(self, "commit", self.inner.commit(commits, ended))
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        faulty!(self, "cancel_requests", self.inner.cancel_requests(leases))
    }
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        let renewed = faulty!(self, "renew", self.inner.renew(worker, leases, lease_for));
        self.claim_late().await?;
        renewed
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        faulty!(self, "reap", self.inner.reap(reap, limit))
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        faulty!(self, "expire", self.inner.expire(limit))
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        faulty!(self, "cancel", self.inner.cancel(scope, ids))
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        faulty!(self, "replay", self.inner.replay(scope, replay))
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        faulty!(self, "discard", self.inner.discard(scope, discard))
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        faulty!(self, "amend", self.inner.amend(scope, id, change))
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        faulty!(self, "due_schedules", self.inner.due_schedules(limit))
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        faulty!(self, "fire", self.inner.fire(firing))
    }
    async fn prune(&self) -> Result<u64> {
        faulty!(self, "prune", self.inner.prune())
    }
}

#[async_trait]
impl Reads for FaultyStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        faulty!(self, "job", self.inner.job(scope, id))
    }
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        faulty!(self, "jobs_by_id", self.inner.jobs_by_id(scope, ids))
    }
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        faulty!(self, "keyed", self.inner.keyed(tenant, key))
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        faulty!(self, "jobs", self.inner.jobs(scope, filter, page))
    }
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
        faulty!(self, "holders", self.inner.holders(ids))
    }
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
        faulty!(self, "parked", self.inner.parked(ids))
    }
    async fn parked_before(&self, id: JobId) -> Result<u64> {
        faulty!(self, "parked_before", self.inner.parked_before(id))
    }
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
        faulty!(self, "gates", self.inner.gates(scope, queue, limit))
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        faulty!(self, "attempts", self.inner.attempts(scope, id, limit))
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        faulty!(self, "schedule_attempts", self.inner.schedule_attempts(scope, schedule, limit))
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        faulty!(self, "dead_groups", self.inner.dead_groups(scope, filter, limit))
    }
    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
        faulty!(self, "dead_series", self.inner.dead_series(scope, filter, steps))
    }
    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        faulty!(self, "depths", self.inner.depths(scope))
    }
    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        faulty!(self, "tallies", self.inner.tallies(scope, since))
    }
    async fn windows(&self, scope: &Scope, since: &[Timestamp]) -> Result<Vec<Vec<(Queue, Kind, Tally)>>> {
        faulty!(self, "windows", self.inner.windows(scope, since))
    }
    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
        faulty!(self, "series", self.inner.series(scope, steps))
    }
}

#[async_trait]
impl Registry for FaultyStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        faulty!(self, "queues", self.inner.queues())
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        faulty!(self, "register_queue", self.inner.register_queue(tenant, name, executor))
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        faulty!(self, "pause_queue", self.inner.pause_queue(tenant, name, paused))
    }
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
        faulty!(self, "put_hold", self.inner.put_hold(name, hold))
    }
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        faulty!(self, "settings", self.inner.settings())
    }
    async fn installation(&self) -> Result<String> {
        faulty!(self, "installation", self.inner.installation())
    }
    async fn stored_settings(&self) -> Result<Vec<Setting>> {
        faulty!(self, "stored_settings", self.inner.stored_settings())
    }
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
        faulty!(self, "put_node_settings", self.inner.put_node_settings(node, settings))
    }
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
        faulty!(self, "touch_node", self.inner.touch_node(node, presence))
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        faulty!(self, "put_setting", self.inner.put_setting(key, value))
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        faulty!(self, "add_schedule", self.inner.add_schedule(spec, next_at))
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        faulty!(self, "schedule", self.inner.schedule(scope, id))
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        faulty!(self, "schedules", self.inner.schedules(scope, page))
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        faulty!(self, "change_schedule", self.inner.change_schedule(scope, id, change))
    }
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        faulty!(self, "remove_schedule", self.inner.remove_schedule(scope, id))
    }
    async fn put_token(&self, token: &Token) -> Result<()> {
        faulty!(self, "put_token", self.inner.put_token(token))
    }
    async fn tokens(&self) -> Result<Vec<Token>> {
        faulty!(self, "tokens", self.inner.tokens())
    }
    async fn revoke_token(&self, id: &str) -> Result<bool> {
        faulty!(self, "revoke_token", self.inner.revoke_token(id))
    }
    async fn put_session(&self, session: &Session) -> Result<()> {
        faulty!(self, "put_session", self.inner.put_session(session))
    }
    async fn sessions(&self) -> Result<Vec<Session>> {
        faulty!(self, "sessions", self.inner.sessions())
    }
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
        faulty!(self, "remove_session", self.inner.remove_session(hash))
    }
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        faulty!(self, "lock_worker", self.inner.lock_worker(worker))
    }
    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        faulty!(self, "report_worker", self.inner.report_worker(report))
    }
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        faulty!(self, "workers", self.inner.workers(since))
    }
    async fn alerts(&self) -> Result<Vec<Alert>> {
        faulty!(self, "alerts", self.inner.alerts())
    }
    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        faulty!(self, "change_alert", self.inner.change_alert(change))
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        faulty!(self, "audit", self.inner.audit(entry))
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        faulty!(self, "audits", self.inner.audits(limit))
    }
    async fn migrate(&self) -> Result<()> {
        faulty!(self, "migrate", self.inner.migrate())
    }
    async fn health(&self) -> Result<Health> {
        faulty!(self, "health", self.inner.health())
    }
    async fn verify(&self) -> Result<Vec<String>> {
        faulty!(self, "verify", self.inner.verify())
    }
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }
    fn notice_time(&self) -> Millis {
        self.inner.notice_time()
    }
    fn wake(&self) -> &Wake {
        if self.loses_wake_ups.load(Ordering::Relaxed) { &self.never_woken } else { self.inner.wake() }
    }
}

#[async_trait]
impl Transfer for FaultyStore {
    async fn last_id(&self) -> Result<JobId> {
        faulty!(self, "last_id", self.inner.last_id())
    }
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
        faulty!(self, "copies", self.inner.copies(after, limit))
    }
    async fn import(&self, import: Import) -> Result<Imported> {
        faulty!(self, "import", self.inner.import(import))
    }
}
