//! Stored jobs: read, wait for, cancel, replay and amend them.

pub(crate) mod bulk;
pub(crate) mod search;
pub(crate) mod waiting;
pub(crate) mod why;

use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::event::{EventKind, event};
use crate::job::Job;
use crate::store::{
    Amend, Amended, Cancelled, Holder, JobFilter, Page, Replay, ReplayOnly, Replayed, Scope, StoreError,
};
use std::collections::HashMap;
use tokio::sync::broadcast::error::RecvError;
use windlass_core::{Attempt, JobId, Millis, State};

/// How often a job that may finish in another process is polled.
const WAIT_POLL: Millis = Millis::from_secs(1);
/// Attempts in a history, unless the caller asks for more.
const HISTORY: u32 = 1000;
/// The most deliveries shown for one job: the latest.
const DELIVERIES: u32 = 20;

/// Stored jobs, live and archived, of all tenants or one. Made by [`Windlass::jobs`].
#[derive(Debug, Clone)]
pub struct Jobs<'a> {
    pub(super) windlass: &'a Windlass,
    pub(super) scope: Scope,
    by: String,
}

impl Windlass {
    /// The stored jobs, live and archived.
    ///
    /// ```
    /// use windlass::client::{JobFilter, Page};
    /// use windlass::{State, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let id = windlass.enqueue_kind("email", &serde_json::json!({ "to": "ann" })).await?;
    /// let waiting = JobFilter { states: vec![State::Queued], ..JobFilter::default() };
    /// assert_eq!(windlass.jobs().list(&waiting, Page::newest(10)).await?.len(), 1);
    /// windlass.jobs().cancel(id).await?;
    /// assert_eq!(windlass.jobs().get(id).await?.unwrap().state, State::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { windlass: self, scope: Scope::All, by: BY_LIBRARY.into() }
    }

    /// Waits until a job has finished and returns it. Short for `jobs().wait(id)`; a worker can run until then.
    ///
    /// ```
    /// use windlass::{State, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let id = windlass.enqueue_kind("email", &serde_json::json!({ "to": "ann" })).await?;
    /// windlass.jobs().cancel(id).await?;
    /// assert_eq!(windlass.wait(id).await?.unwrap().state, State::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn wait(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.jobs().wait(id).await
    }
}

impl<'a> Jobs<'a> {
    /// The jobs of one tenant, or of all. Jobs outside the scope do not exist for this handle.
    #[must_use]
    pub fn within(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// A job, live or archived.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.windlass.store().job(&self.scope, id).await
    }

    /// The jobs with these ids that exist, in the order given.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get_many(&self, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        let mut jobs = self.windlass.store().jobs_by_id(&self.scope, ids).await?;
        let places: HashMap<JobId, usize> = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        jobs.sort_by_key(|job| places.get(&job.id).copied());
        Ok(jobs)
    }

    /// Jobs that match, a page at a time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, filter: &JobFilter, page: Page) -> Result<Vec<Job>, StoreError> {
        self.windlass.store().jobs(&self.scope, filter, page).await
    }

    /// Who runs those of these jobs that run, in any order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn holders(&self, jobs: &[Job]) -> Result<Vec<Holder>, StoreError> {
        let running = jobs.iter().filter(|job| job.state == State::Running && self.scope.covers(&job.tenant));
        let ids: Vec<JobId> = running.map(|job| job.id).collect();
        if ids.is_empty() { Ok(Vec::new()) } else { self.windlass.store().holders(&ids).await }
    }

    /// A job's attempts, oldest first. Empty if there is no such job.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        self.latest_attempts(id, HISTORY).await
    }

    /// A job's latest attempts, at most `limit` of them, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn latest_attempts(&self, id: JobId, limit: u32) -> Result<Vec<Attempt>, StoreError> {
        self.windlass.store().attempts(&self.scope, id, limit).await
    }

    /// The webhook deliveries of a job: the latest 20, oldest first. A job without a webhook, or one that has never
    /// finished, has none; that needs no query.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn deliveries(&self, job: &Job) -> Result<Vec<Job>, StoreError> {
        let has_finished = !job.state.is_live() || job.replays > 0;
        if job.webhook.is_none() || !has_finished {
            return Ok(Vec::new());
        }
        let mut deliveries = self.children(job.id, Page::newest(DELIVERIES)).await?;
        deliveries.reverse();
        Ok(deliveries)
    }

    /// The jobs that exist because of a job: its deliveries.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn children(&self, id: JobId, page: Page) -> Result<Vec<Job>, StoreError> {
        self.list(&JobFilter { parent: Some(id), ..JobFilter::default() }, page).await
    }

    /// Waits until a job has finished and returns it, with its state and result. `None` if there is no such job, or if
    /// its queue does not keep finished jobs. Returns at once if the job finishes in this process, within a second
    /// otherwise.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn wait(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let mut events = self.windlass.events().subscribe();
        loop {
            match self.get(id).await? {
                Some(job) if job.state.is_live() => {}
                finished => return Ok(finished),
            }
            let ended = async {
                loop {
                    match events.recv().await {
                        Ok(event) if event.job == id && !event.event_kind.state().is_live() => return,
                        Ok(_) => {}
                        // The event of this job may be among the missed ones.
                        Err(RecvError::Lagged(_)) => return,
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            tokio::select! { () = ended => {}, () = self.windlass.clock().sleep(WAIT_POLL) => {} }
        }
    }

    /// Ends a waiting job at once. Asks a running one to stop, at once if it runs in this process.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn cancel(&self, id: JobId) -> Result<Cancelled, StoreError> {
        let mut cancelled = self.cancel_many(vec![id]).await?;
        Ok(cancelled.pop().expect("a store answers for every job"))
    }

    /// Ends many jobs in one commit, with an answer for each in the order given.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn cancel_many(&self, ids: Vec<JobId>) -> Result<Vec<Cancelled>, StoreError> {
        let result = self.windlass.store().cancel(&self.scope, ids.clone()).await;
        self.windlass.inner().record_contact(&result);
        let cancelled = result?;
        let of = |what| ids.iter().zip(&cancelled).filter(move |(_, c)| **c == what).map(|(id, _)| *id);
        let asked: Vec<JobId> = of(Cancelled::Requested).collect();
        for held_leases in self.windlass.inner().held_leases() {
            held_leases.request_cancel(&asked);
        }
        if self.windlass.events().has_audience() {
            self.windlass.emit_for(&of(Cancelled::Now).collect::<Vec<_>>(), &EventKind::Cancelled).await;
        }
        Ok(cancelled)
    }

    /// Sends a job again: same id, fresh allowance of retries. A waiting one becomes due now.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn replay(&self, id: JobId) -> Result<Replayed, StoreError> {
        let mut replayed = self.replay_many(vec![id]).await?;
        Ok(replayed.pop().expect("a store answers for every job"))
    }

    /// Sends many jobs again in one commit, with an answer for each in the order given.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn replay_many(&self, ids: Vec<JobId>) -> Result<Vec<Replayed>, StoreError> {
        let what = match ids[..] {
            [id] => format!("job {id}"),
            _ => format!("{} jobs", ids.len()),
        };
        let replay = Replay { what, ..Replay::new(ids, ReplayOnly::Any, self.by.clone()) };
        self.windlass.replay_in(&self.scope, replay).await
    }

    /// Who acts, for the audit.
    pub(super) fn actor(&self) -> &str {
        &self.by
    }

    pub(super) async fn send_again(&self, replay: Replay) -> Result<Vec<Replayed>, StoreError> {
        self.windlass.replay_in(&self.scope, replay).await
    }

    /// Adds an entry to the audit.
    pub(super) async fn record(&self, action: &str, count: u64, detail: &str) -> Result<(), StoreError> {
        self.windlass.audit().by(&self.by).record(action, count, detail).await
    }

    /// Changes the priority or time of a waiting job.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn amend(&self, id: JobId, change: Amend) -> Result<Amended, StoreError> {
        let result = self.windlass.store().amend(&self.scope, id, change).await;
        self.windlass.inner().record_contact(&result);
        result
    }
}

impl Windlass {
    /// Sends the jobs in `scope` again, as `replay` says.
    ///
    /// # Errors
    /// The store cannot be written to.
    #[doc(hidden)]
    pub async fn replay_in(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>, StoreError> {
        let ids = replay.ids.clone();
        let result = self.store().replay(scope, replay).await;
        self.inner().record_contact(&result);
        let replayed = result?;
        if self.events().has_listeners() {
            let sent = ids.iter().zip(&replayed).filter(|(_, result)| **result == Replayed::Queued);
            self.emit_for(&sent.map(|(id, _)| *id).collect::<Vec<_>>(), &EventKind::Queued).await;
        }
        Ok(replayed)
    }

    /// Emits an event for jobs that changed outside an attempt. Reads them in one query, because reading a thousand
    /// jobs one by one takes longer than cancelling them.
    async fn emit_for(&self, ids: &[JobId], what: &EventKind) {
        if ids.is_empty() {
            return;
        }
        for job in &self.jobs().get_many(ids).await.unwrap_or_default() {
            self.events().emit(|| event(job, self.clock().now(), what.clone()));
        }
    }
}
