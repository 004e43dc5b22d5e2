//! A store that passes calls on to another one, and does one thing wrong.

use super::Bug;
use crate::pass_on::{pass_on_reads, pass_on_registry};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::Clock;
use windlass::core::gate::Hold;
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::{Attempt, Executor, JobId, Millis, Next, Reason, State, Status, Timestamp};
use windlass::low_level::job::{ClaimedJob, HttpCall, Job, LeaseId, NewJob};
use windlass::low_level::stores::*;
use windlass::low_level::tally::Tally;
use windlass::low_level::wake::Wake;

type Result<T> = std::result::Result<T, StoreError>;

/// Jobs due this soon are claimed at once by [`Bug::ClaimBeforeDue`].
const TOO_SOON: Millis = Millis::from_secs(2);
const ALL_JOBS: Page = Page { after: None, limit: 10_000, order: Order::OldestFirst };

#[derive(Debug)]
pub struct BuggyStore {
    inner: Arc<dyn Store>,
    bug: Bug,
    /// Counts calls, so that a bug can show only now and then.
    calls: AtomicI64,
    /// The first job of each key, whatever its tenant.
    keys: Mutex<BTreeMap<Arc<str>, JobId>>,
    /// The latest claim of each job.
    claims: Mutex<BTreeMap<JobId, ClaimedJob>>,
}

impl BuggyStore {
    pub fn new(inner: Arc<dyn Store>, bug: Bug) -> Self {
        Self { inner, bug, calls: AtomicI64::new(0), keys: Mutex::default(), claims: Mutex::default() }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Whether the bug shows in this call: in every `n`th.
    fn shows(&self, bug: Bug, n: i64) -> bool {
        self.has(bug) && self.calls.fetch_add(1, Ordering::Relaxed) % n == n - 1
    }

    /// An id that no stored job has.
    fn made_up(&self) -> JobId {
        JobId(1_000_000_000 + self.calls.fetch_add(1, Ordering::Relaxed))
    }

    async fn live(&self, state: State) -> Result<Vec<Job>> {
        let filter = JobFilter { states: vec![state], ..JobFilter::default() };
        self.inner.jobs(&Scope::All, &filter, ALL_JOBS).await
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<JobId, ClaimedJob>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job that any tenant has stored under this key.
    fn same_key(&self, new: &NewJob) -> Option<JobId> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(&new.idempotency.as_ref()?.key).copied()
    }

    fn remember_keys(&self, jobs: &[NewJob], answers: &[Enqueued]) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        for (new, answer) in jobs.iter().zip(answers) {
            if let (Some(idempotency), Some(id)) = (&new.idempotency, answer.id()) {
                keys.entry(idempotency.key.clone()).or_insert(id);
            }
        }
    }

    async fn before_claim(&self, claim: &mut Claim) -> Result<()> {
        if self.has(Bug::ClaimAllSuspects) {
            claim.suspects = claim.limit;
        }
        if self.has(Bug::ClaimBeforeDue) {
            let now = self.inner.clock().now();
            for job in self.live(State::Retrying).await? {
                if job.due_at > now && job.due_at <= now + TOO_SOON {
                    let change = Amend { run_at: Some(now), ..Amend::default() };
                    self.inner.amend(&Scope::All, job.id, change).await?;
                }
            }
        }
        Ok(())
    }

    async fn after_claim(&self, claim: &Claim, claimed: &mut Claimed) -> Result<()> {
        for job in &mut claimed.jobs {
            self.spoil(&mut job.job);
        }
        for job in &claimed.jobs {
            self.claims().insert(job.id, job.clone());
        }
        if self.has(Bug::ClaimTwice) && claimed.jobs.is_empty() && claim.limit > 0 {
            let running = self.live(State::Running).await?;
            let again = running.iter().find_map(|job| self.claims().get(&job.id).cloned());
            claimed.jobs.extend(again);
        }
        Ok(())
    }

    fn spoil(&self, job: &mut Job) {
        if job.attempt < 2 {
            return;
        }
        if self.has(Bug::AttemptNotRaised) {
            job.attempt -= 1;
        }
        if let Some(call) = job.http.clone().filter(|_| self.has(Bug::WebhookIdPerTry)) {
            let id = format!("msg_{}", job.attempt);
            job.http = Some(HttpCall { webhook_id: Some(id), ..HttpCall::clone(&call) }.into());
        }
        if job.http.is_some() && self.has(Bug::WebhookBodyPerTry) {
            job.payload = format!("{} ", job.payload).into();
        }
    }

    async fn before_commit(&self, commit: &mut Commit) -> Result<()> {
        let wait = |delay: Millis| Next::Wait { state: State::Retrying, due_at: commit.finished_at + delay, delay };
        let next = match commit.transition.next {
            Next::Failed(Reason::AtMostOnce) if self.has(Bug::RestartsAtMostOnce) => wait(Millis::ZERO),
            Next::Wait { delay, .. } if self.has(Bug::DelayPastCap) && commit.transition.status == Status::Failed => {
                wait(delay + Millis::from_secs(30))
            }
            next => next,
        };
        commit.transition.next = next;
        if self.has(Bug::WebhookOutsideCommit) {
            commit.follow_ups.clear();
        }
        if self.has(Bug::CommitWithoutFence)
            && let Some(latest) = self.claims().get(&commit.job)
        {
            (commit.attempt, commit.lease) = (latest.attempt, latest.lease);
        }
        Ok(())
    }
}

#[async_trait]
impl JobLife for BuggyStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        if self.shows(Bug::AcknowledgedBeforeStored, 5) {
            let now = self.inner.clock().now();
            let created = |new: &NewJob| Enqueued::Created {
                id: self.made_up(),
                created_at: now,
                due_at: new.run_at.moment(now),
            };
            return Ok(jobs.iter().map(created).collect());
        }
        if self.has(Bug::KeyWithoutTenant) {
            let known: Option<Vec<Enqueued>> =
                jobs.iter().map(|new| self.same_key(new).map(Enqueued::Existing)).collect();
            if let Some(answers) = known {
                return Ok(answers);
            }
        }
        let answers = self.inner.enqueue(jobs.clone(), atomicity).await?;
        self.remember_keys(&jobs, &answers);
        Ok(answers)
    }
    async fn claim(&self, mut claim: Claim) -> Result<Claimed> {
        self.before_claim(&mut claim).await?;
        let mut claimed = self.inner.claim(claim.clone()).await?;
        self.after_claim(&claim, &mut claimed).await?;
        Ok(claimed)
    }
    async fn held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let held = self.inner.held(leases).await?;
        Ok(if self.has(Bug::HeldForgotten) { Vec::new() } else { held })
    }
    async fn commit(&self, mut commits: Vec<Commit>, mut ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        for commit in &mut commits {
            self.before_commit(commit).await?;
        }
        if self.shows(Bug::UnknownCommitIsSuccess, 5) {
            return Ok(commits.iter().map(|_| Committed::Applied(Vec::new())).collect());
        }
        if self.has(Bug::LeaseEndedTooSoon) {
            ended.extend(commits.iter().map(|commit| commit.lease));
        }
        let mut answers = self.inner.commit(commits, ended).await?;
        if self.shows(Bug::AppliedSaidStale, 5) {
            answers.iter_mut().for_each(|answer| *answer = Committed::Stale);
        }
        Ok(answers)
    }
    async fn cancel_requests(&self, leases: Vec<LeaseId>) -> Result<Vec<JobId>> {
        let requested = self.inner.cancel_requests(leases).await?;
        Ok(if self.has(Bug::CancelNotReported) { Vec::new() } else { requested })
    }
    async fn renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        let mut renewed = self.inner.renew(worker, leases, lease_for).await?;
        if self.has(Bug::RenewRevivesReaped) {
            renewed.lost.clear();
        }
        if self.has(Bug::CancelNotReported) {
            renewed.cancel_requested.clear();
        }
        Ok(renewed)
    }
    async fn reap(&self, mut reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        if let (Reap::Expired { spared }, true) = (&mut reap, self.has(Bug::OutageCostsAttempts)) {
            *spared = Spared::none();
        }
        let mut reaped = self.inner.reap(reap, limit).await?;
        if self.shows(Bug::ReapTakesLiving, 5) {
            reaped.extend(self.inner.reap(Reap::Of(WorkerId::new("node-0-0")), limit).await?);
            reaped.extend(self.inner.reap(Reap::Of(WorkerId::new("node-0")), limit).await?);
        }
        Ok(reaped)
    }
    async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        self.inner.expire(limit).await
    }
    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        if self.has(Bug::CancelNotKept) {
            return Ok(ids.iter().map(|_| Cancelled::Requested).collect());
        }
        let scope = if self.has(Bug::ScopeIgnored) { &Scope::All } else { scope };
        self.inner.cancel(scope, ids).await
    }
    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        self.inner.replay(scope, replay).await
    }
    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        let answers = self.inner.discard(scope, discard).await?;
        let wrong = |answer| if self.has(Bug::DiscardNotReported) { Discarded::NotDead } else { answer };
        Ok(answers.into_iter().map(wrong).collect())
    }
    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        self.inner.amend(scope, id, change).await
    }
    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        self.inner.due_schedules(limit).await
    }
    async fn fire(&self, mut firing: Firing) -> Result<Fired> {
        if self.has(Bug::FiringWithoutCompare)
            && let Trigger::Due { nominal, .. } = &mut firing.trigger
            && let Some(next_at) =
                self.inner.schedule(&Scope::All, firing.schedule).await?.and_then(|schedule| schedule.next_at)
        {
            *nominal = next_at;
        }
        self.inner.fire(firing).await
    }
    async fn prune(&self) -> Result<u64> {
        let pruned = self.inner.prune().await?;
        if self.has(Bug::PruneTakesLive) {
            let ids = self.live(State::Queued).await?.into_iter().map(|job| job.id).collect();
            self.inner.cancel(&Scope::All, ids).await?;
        }
        Ok(pruned)
    }
}

pass_on_reads!(BuggyStore);

pass_on_registry! { BuggyStore,
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        if self.has(Bug::ClaimFromPaused) {
            return Ok(1);
        }
        self.inner.pause_queue(tenant, name, paused).await
    }
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        let value = value.filter(|_| !self.has(Bug::LimitsIgnored));
        self.inner.put_setting(key, value).await
    }
}
