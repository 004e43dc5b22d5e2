//! What a person or caller does with a stored job: look, wait, cancel, replay.

use crate::client::windlass::Windlass;
use crate::event::{EventKind, event};
use crate::job::Job;
use crate::store::{Cancelled, Replay, ReplayOnly, Replayed, Scope, StoreError};
use std::collections::HashMap;
use tokio::sync::broadcast::error::RecvError;
use windlass_core::{Attempt, JobId, Millis};

/// How often a job that may finish in another process is looked at.
const WAIT_POLL: Millis = Millis::from_secs(1);
/// Attempts that a history shows, unless asked for more.
const HISTORY: u32 = 1000;

impl Windlass {
    /// A job, live or archived.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.store().job(&Scope::All, id).await
    }

    /// A job's attempts, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        self.store().attempts(&Scope::All, id, HISTORY).await
    }

    /// Ends a job: a waiting one at once; a running one is asked to stop, at once if it runs in this process.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn cancel(&self, id: JobId) -> Result<Cancelled, StoreError> {
        let mut cancelled = self.cancel_in(&Scope::All, vec![id]).await?;
        Ok(cancelled.pop().expect("a store answers for every job"))
    }

    /// The same for many jobs, of those that `scope` covers.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn cancel_in(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>, StoreError> {
        let result = self.store().cancel(scope, ids.clone()).await;
        self.record_contact(&result);
        let cancelled = result?;
        let of = |what| ids.iter().zip(&cancelled).filter(move |(_, c)| **c == what).map(|(id, _)| *id);
        let asked: Vec<JobId> = of(Cancelled::Requested).collect();
        for held_leases in self.held_leases() {
            held_leases.request_cancel(&asked);
        }
        if self.events().has_audience() {
            self.tell(&of(Cancelled::Now).collect::<Vec<_>>(), EventKind::Cancelled).await;
        }
        Ok(cancelled)
    }

    /// Sends a job again: same id, fresh allowance. A waiting one becomes due now.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn replay(&self, id: JobId) -> Result<Replayed, StoreError> {
        let replay = Replay::new(vec![id], ReplayOnly::Any, "library");
        let mut replayed = self.replay_in(&Scope::All, replay).await?;
        Ok(replayed.pop().expect("a store answers for every job"))
    }

    /// The same for many jobs, of those that `scope` covers.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn replay_in(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>, StoreError> {
        let ids = replay.ids.clone();
        let result = self.store().replay(scope, replay).await;
        self.record_contact(&result);
        let replayed = result?;
        if self.events().has_listeners() {
            let sent = ids.iter().zip(&replayed).filter(|(_, result)| **result == Replayed::Queued);
            self.tell(&sent.map(|(id, _)| *id).collect::<Vec<_>>(), EventKind::Queued).await;
        }
        Ok(replayed)
    }

    /// Waits until a job has finished and returns it, with its state and result. `None` if there is no such job, or its queue
    /// keeps none that finished. At once where it finishes in this process, within a second otherwise.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn wait(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let mut events = self.events().subscribe();
        loop {
            match self.job(id).await? {
                Some(job) if job.state.is_live() => {}
                finished => return Ok(finished),
            }
            let ended = async {
                loop {
                    match events.recv().await {
                        Ok(event) if event.job == id && !event.event_kind.state().is_live() => return,
                        Ok(_) => {}
                        // Whatever was missed may have been it.
                        Err(RecvError::Lagged(_)) => return,
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            tokio::select! { () = ended => {}, () = self.clock().sleep(WAIT_POLL) => {} }
        }
    }

    /// Tells about jobs that changed outside an attempt, read at once: one by one, a thousand take longer than cancelling them.
    async fn tell(&self, ids: &[JobId], what: EventKind) {
        if ids.is_empty() {
            return;
        }
        let mut jobs = self.store().jobs_by_id(&Scope::All, ids).await.unwrap_or_default();
        let places: HashMap<JobId, usize> = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        jobs.sort_by_key(|job| places.get(&job.id).copied());
        for job in &jobs {
            self.events().emit(|| event(job, self.clock().now(), what.clone()));
        }
    }
}
