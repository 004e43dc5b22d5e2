//! The layer around a store: what goes in is sealed, what comes out is opened. A node that lacks a key in use neither
//! claims nor stores anything.

use super::cipher::{Cipher, OpenError};
use super::in_use::KeysInUse;
use super::ring::KeyRing;
use super::unopened::{Logged, schedule_without_values, without_values};
use crate::clock::Clock;
use crate::fingerprint::normalise;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::random::Random;
use crate::store::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadCount,
    DeadGroup, Depth, Discard, Discarded, Enqueued, Fired, Firing, GateName, GateStatus, Health, Holder, Import,
    Imported, JobCopy, JobFilter, JobLife, KeyedJob, NodeSetting, Page, ParkedJob, Presence, Queue, Reads, Reap,
    Registry, Renewed, Replay, Replayed, Schedule, ScheduleChange, ScheduleSpec, Scope, Session, Setting, SettingKey,
    Steps, Store, StoreError, StoredText, TextChange, TextPlace, Token, Transfer, Transitioned, WorkerId, WorkerLock,
    WorkerReport,
};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::gate::Hold;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::key::Request;
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// The worker of a job that is given back by whoever asks for the jobs of a claim.
const UNKNOWN_WORKER: &str = "unknown";

/// A store whose values are sealed.
#[derive(Debug)]
pub(crate) struct SealedStore {
    pub(super) inner: Arc<dyn Store>,
    pub(super) cipher: Cipher,
    pub(super) in_use: KeysInUse,
    pub(super) logged: Logged,
}

impl SealedStore {
    /// Seals with the first key of the ring. Without keys everything stays as it is, and what is sealed is refused.
    pub(crate) fn new(inner: Arc<dyn Store>, ring: KeyRing, random: Random) -> Arc<Self> {
        let cipher = Cipher { ring, random };
        Arc::new(Self { inner, cipher, in_use: KeysInUse::default(), logged: Logged::default() })
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        &self.cipher.ring
    }

    /// A job as it is stored, for callers with a transaction of their own.
    ///
    /// # Errors
    /// A key in use is not in the ring.
    #[cfg(feature = "postgres")]
    pub(crate) async fn seal_new(&self, job: NewJob) -> Result<NewJob> {
        self.ready().await?;
        Ok(self.cipher.seal_new(job))
    }

    /// The same for callers that have seen to the [`registration`](Self::registration) themselves.
    #[cfg(feature = "sqlite")]
    pub(crate) fn seal_registered(&self, job: NewJob) -> NewJob {
        self.cipher.seal_new(job)
    }

    /// A commit as it is stored, for callers with a transaction of their own. They hold an attempt that was claimed
    /// here, so the key is registered.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn seal_commit(&self, commit: Commit) -> Commit {
        self.cipher.seal_commit(commit)
    }

    fn open(&self, job: Job) -> Result<Job> {
        let id = job.id;
        self.cipher.open_job(job).map_err(|error| of_row(&error, format!("job {id}")))
    }

    fn open_all(&self, jobs: Vec<Job>) -> Result<Vec<Job>> {
        jobs.into_iter().map(|job| self.open(job)).collect()
    }

    fn open_schedule(&self, schedule: Schedule) -> Result<Schedule> {
        let id = schedule.id;
        self.cipher.open_schedule(schedule).map_err(|error| of_row(&error, format!("schedule {id}")))
    }

    fn open_or_log(&self, schedule: Schedule) -> Option<Schedule> {
        let id = schedule.id;
        let opened = self.open_schedule(schedule);
        if let Err(error) = &opened
            && self.logged.is_new(&format!("schedule {id}"))
        {
            tracing::error!(schedule = id.0, %error, "a schedule cannot be opened and does not fire");
        }
        opened.ok()
    }

    /// A setting that cannot be opened stays sealed: a node without the key starts, says so, and uses no secret.
    fn open_setting(&self, key: &SettingKey, text: String) -> String {
        match self.cipher.open_setting(key, &text) {
            Ok(opened) => opened,
            Err(error) => {
                let (scope, tenant, name) = key.parts();
                tracing::debug!(scope, tenant, name, %error, "a setting cannot be opened");
                text
            }
        }
    }

    /// What upkeep moved has been committed, so a job that cannot be opened is reported as it is.
    fn open_transitioned(&self, moved: Vec<Transitioned>) -> Vec<Transitioned> {
        let open = |one: Transitioned| {
            let job = self.cipher.open_job(one.job.clone()).unwrap_or_else(|_| one.job.clone());
            Transitioned { job, ..one }
        };
        moved.into_iter().map(open).collect()
    }

    /// A key conflict with a job that was stored in clear is none if the opened requests are the same: their marks
    /// could not be compared.
    async fn judge_conflict(&self, answer: Enqueued, tenant: &Tenant, request: &(Kind, Arc<str>)) -> Enqueued {
        let Enqueued::KeyConflict(id) = answer else { return answer };
        // The jobs are stored already: a read that fails now must not make that look undone.
        let Ok(Some(job)) = self.job(&Scope::Tenant(tenant.clone()), id).await else { return answer };
        let is_same = Request::new(&job.kind, &job.payload).is_same(Request::new(&request.0, &request.1));
        if is_same { Enqueued::Existing(id) } else { answer }
    }
}

/// The jobs that share their lease with others, and those that do not.
fn sharing(jobs: Vec<ClaimedJob>) -> (Vec<ClaimedJob>, Vec<ClaimedJob>) {
    let mut under: HashMap<LeaseId, usize> = HashMap::new();
    jobs.iter().for_each(|job| *under.entry(job.lease).or_default() += 1);
    jobs.into_iter().partition(|job| under[&job.lease] > 1)
}

pub(super) fn of_row(error: &OpenError, row: String) -> StoreError {
    match error {
        OpenError::UnknownKey(_) => StoreError::Sealed(format!("{row} is {error}")),
        OpenError::Damaged(_) => StoreError::corrupt(row, format!("it opens with its key; it is {error}")),
    }
}

#[async_trait]
impl JobLife for SealedStore {
    fn commits_at_once(&self) -> usize {
        self.inner.commits_at_once()
    }
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        self.ready().await?;
        if self.cipher.ring.is_empty() {
            return self.inner.enqueue(jobs, atomicity).await;
        }
        let given: Vec<(Tenant, (Kind, Arc<str>))> =
            jobs.iter().map(|job| (job.tenant.clone(), (job.kind.clone(), job.payload.clone()))).collect();
        let sealed = jobs.into_iter().map(|job| self.cipher.seal_new(job)).collect();
        let answers = self.inner.enqueue(sealed, atomicity).await?;
        if atomicity == Atomicity::All {
            return Ok(answers);
        }
        let mut judged = Vec::with_capacity(answers.len());
        for (answer, (tenant, request)) in answers.into_iter().zip(&given) {
            judged.push(self.judge_conflict(answer, tenant, request).await);
        }
        Ok(judged)
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.ready().await?;
        let worker = claim.worker.clone();
        let claimed = self.inner.claim(claim).await?;
        let sorted = self.sort_claimed(claimed.jobs);
        // The jobs are claimed: whoever claims must ask for them again, and gets here by `held`.
        self.give_back(&sorted, &worker.0).await.map_err(|error| StoreError::unknown(error.to_string()))?;
        Ok(Claimed { jobs: sorted.opened, ..claimed })
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let (shared, own): (Vec<_>, Vec<_>) = sharing(self.inner.held(leases).await?);
        // Jobs that share a lease were claimed here, and the claimer did not get them: none has started. A remote
        // worker may run a job that has its lease for itself, so that one is left to its lease.
        let sorted = self.sort_claimed(shared);
        self.give_back(&sorted, UNKNOWN_WORKER).await?;
        let mut opened = sorted.opened;
        opened.extend(self.sort_claimed(own).opened);
        Ok(opened)
    }
    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        if !commits.is_empty() {
            self.ready_to_commit().await?;
        }
        let sealed = commits.into_iter().map(|commit| self.cipher.seal_commit(commit)).collect();
        self.inner.commit(sealed, ended).await
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        self.inner.cancel_requests(leases).await
    }
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        self.inner.renew(worker, leases, lease_for).await
    }
    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        Ok(self.open_transitioned(self.inner.reap(reap, limit).await?))
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        Ok(self.open_transitioned(self.inner.expire(limit).await?))
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        self.inner.cancel(scope, ids).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        self.inner.replay(scope, replay).await
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        self.inner.discard(scope, discard).await
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        self.inner.amend(scope, id, change).await
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        let (due, next) = self.inner.due_schedules(limit).await?;
        // One that cannot be opened stays due, and must not keep the others from firing.
        let opened = due.into_iter().filter_map(|schedule| self.open_or_log(schedule)).collect();
        Ok((opened, next))
    }
    async fn fire(&self, firing: Firing) -> Result<Fired> {
        self.ready().await?;
        let job = firing.job.map(|job| self.cipher.seal_new(job));
        self.inner.fire(Firing { job, ..firing }).await
    }
    async fn prune(&self) -> Result<u64> {
        self.inner.prune().await
    }
}

#[async_trait]
impl Reads for SealedStore {
    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        self.inner.job(scope, id).await?.map(|job| self.open(job)).transpose()
    }
    async fn jobs_by_id(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>> {
        self.open_all(self.inner.jobs_by_id(scope, ids).await?)
    }
    async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        self.inner.keyed(tenant, key).await
    }
    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        let show = |job: Job| match self.cipher.open_job(job.clone()) {
            Ok(job) => Ok(job),
            Err(error @ OpenError::UnknownKey(_)) => Ok(without_values(job, &error)),
            Err(error @ OpenError::Damaged(_)) => Err(of_row(&error, format!("job {}", job.id))),
        };
        self.inner.jobs(scope, filter, page).await?.into_iter().map(show).collect()
    }
    async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
        self.inner.holders(ids).await
    }
    async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
        self.inner.parked(ids).await
    }
    async fn parked_before(&self, id: JobId) -> Result<u64> {
        self.inner.parked_before(id).await
    }
    async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
        self.inner.gates(scope, queue, limit).await
    }
    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        let attempts = self.inner.attempts(scope, id, limit).await?;
        let open = |attempt| self.cipher.open_attempt(id, attempt).map_err(|error| of_row(&error, format!("job {id}")));
        attempts.into_iter().map(open).collect()
    }
    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        let attempts = self.inner.schedule_attempts(scope, schedule, limit).await?;
        let open = |(id, attempt): (JobId, Attempt)| {
            let opened = self.cipher.open_attempt(id, attempt).map_err(|error| of_row(&error, format!("job {id}")));
            opened.map(|attempt| (id, attempt))
        };
        attempts.into_iter().map(open).collect()
    }
    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        let mut groups = self.inner.dead_groups(scope, filter, limit).await?;
        let is_sealed = |group: &DeadGroup| windlass_core::sealed::is_sealed(&group.message);
        let examples: Vec<JobId> = groups.iter().filter(|group| is_sealed(group)).map(|group| group.example).collect();
        if examples.is_empty() {
            return Ok(groups);
        }
        // A group's message is any of its jobs', and opens as that job's error only: the example's is read instead.
        let jobs = self.jobs_by_id(scope, &examples).await?;
        for group in groups.iter_mut().filter(|group| is_sealed(group)) {
            let example = jobs.iter().find(|job| job.id == group.example);
            group.message = example.and_then(|job| job.error.as_deref()).map(normalise).unwrap_or_default();
        }
        Ok(groups)
    }
    async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
        self.inner.dead_series(scope, filter, steps).await
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
    async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
        self.inner.series(scope, steps).await
    }
}

#[async_trait]
impl Registry for SealedStore {
    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner.queues().await
    }
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        self.inner.register_queue(tenant, name, executor).await
    }
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        self.inner.pause_queue(tenant, name, paused).await
    }
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
        self.inner.put_hold(name, hold).await
    }
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        let settings = self.inner.settings().await?;
        let open = |(key, text): (SettingKey, String)| {
            let opened = self.open_setting(&key, text);
            (key, opened)
        };
        Ok(settings.into_iter().map(open).collect())
    }
    async fn installation(&self) -> Result<String> {
        self.inner.installation().await
    }
    async fn stored_settings(&self) -> Result<Vec<Setting>> {
        let settings = self.inner.stored_settings().await?;
        let open = |setting: Setting| Setting { value: self.open_setting(&setting.key, setting.value), ..setting };
        Ok(settings.into_iter().map(open).collect())
    }
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
        let seal = |setting: &NodeSetting| NodeSetting {
            value: self.cipher.seal_setting(&setting.key, &setting.value),
            ..setting.clone()
        };
        let sealed: Vec<NodeSetting> = settings.iter().map(seal).collect();
        if sealed != settings {
            self.ready().await?;
        }
        self.inner.put_node_settings(node, &sealed).await
    }
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
        self.inner.touch_node(node, presence).await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        let sealed = value.map(|text| self.cipher.seal_setting(key, text));
        if sealed.as_deref() != value {
            self.ready().await?;
        }
        self.inner.put_setting(key, sealed.as_deref()).await
    }
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        self.ready().await?;
        self.open_schedule(self.inner.add_schedule(self.cipher.seal_spec(spec), next_at).await?)
    }
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        self.inner.schedule(scope, id).await?.map(|schedule| self.open_schedule(schedule)).transpose()
    }
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        let show = |schedule: Schedule| match self.cipher.open_schedule(schedule.clone()) {
            Ok(schedule) => Ok(schedule),
            Err(error @ OpenError::UnknownKey(_)) => Ok(schedule_without_values(schedule, &error)),
            Err(error @ OpenError::Damaged(_)) => Err(of_row(&error, format!("schedule {}", schedule.id))),
        };
        self.inner.schedules(scope, page).await?.into_iter().map(show).collect()
    }
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        if change.spec.is_some() {
            self.ready().await?;
        }
        let spec = change.spec.map(|spec| self.cipher.seal_spec(spec));
        let changed = self.inner.change_schedule(scope, id, ScheduleChange { spec, ..change }).await?;
        changed.map(|schedule| self.open_schedule(schedule)).transpose()
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
    async fn put_session(&self, session: &Session) -> Result<()> {
        self.inner.put_session(session).await
    }
    async fn sessions(&self) -> Result<Vec<Session>> {
        self.inner.sessions().await
    }
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
        self.inner.remove_session(hash).await
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
        if !change.notices.is_empty() {
            self.ready().await?;
        }
        let notices = change.notices.into_iter().map(|job| self.cipher.seal_new(job)).collect();
        self.inner.change_alert(AlertChange { notices, ..change }).await
    }
    async fn audit(&self, entry: &Audit) -> Result<()> {
        self.inner.audit(entry).await
    }
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        self.inner.audits(limit).await
    }
    async fn texts(&self, after: Option<&TextPlace>, limit: u32) -> Result<Vec<StoredText>> {
        self.inner.texts(after, limit).await
    }
    async fn replace_texts(&self, changes: Vec<TextChange>) -> Result<u64> {
        self.inner.replace_texts(changes).await
    }
    async fn migrate(&self) -> Result<()> {
        self.inner.migrate().await
    }
    async fn health(&self) -> Result<Health> {
        let health = self.inner.health().await?;
        self.ready().await?;
        Ok(health)
    }
    async fn verify(&self) -> Result<Vec<String>> {
        self.inner.verify().await
    }
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }
    fn notice_time(&self) -> Millis {
        self.inner.notice_time()
    }
    fn wake(&self) -> &Wake {
        self.inner.wake()
    }
}

#[async_trait]
impl Transfer for SealedStore {
    async fn last_id(&self) -> Result<JobId> {
        self.inner.last_id().await
    }
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
        let open = |copy: JobCopy| {
            let id = copy.job.id;
            self.cipher.open_copy(copy).map_err(|error| of_row(&error, format!("job {id}")))
        };
        self.inner.copies(after, limit).await?.into_iter().map(open).collect()
    }
    async fn import(&self, import: Import) -> Result<Imported> {
        self.ready().await?;
        let seal = |schedule: Schedule| Schedule { spec: self.cipher.seal_spec(schedule.spec), ..schedule };
        let schedules = import.schedules.into_iter().map(seal).collect();
        let jobs = import.jobs.into_iter().map(|copy| self.cipher.seal_copy(copy)).collect();
        self.inner.import(Import { schedules, jobs, ..import }).await
    }
}
