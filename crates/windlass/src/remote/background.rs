//! Background: work that outlives the request it began with. A claim is never dropped halfway, and jobs that nobody received
//! are given back, however long the store is away: an outage must cost no job an attempt.

use crate::client::windlass::Windlass;
use crate::job::{ClaimedJob, LeaseId};
use crate::leases::commit::{commit, release};
use crate::leases::doubt::{Doubt, Found};
use crate::leases::limits::MAX_TASKS;
use crate::leases::reconnect::Reconnect;
use crate::store::StoreError;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Who gives jobs back, in the ledger: the worker never had them.
const GIVEN_BACK_BY: &str = "windlass";

#[derive(Debug, Clone)]
pub(super) struct Background {
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Default for Background {
    fn default() -> Self {
        Self { tasks: TaskTracker::new(), permits: Arc::new(Semaphore::new(MAX_TASKS)), stop: CancellationToken::new() }
    }
}

impl Background {
    /// Cancelled when waiting requests should end.
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Runs `work` to its end, whatever becomes of the caller. At most [`MAX_TASKS`] at a time.
    ///
    /// # Errors
    /// There are as many already.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), StoreError> {
        let permit = self.permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| StoreError::unavailable("too many claims of remote workers are under way"))?;
        self.tasks.spawn(async move {
            work.await;
            drop(permit);
        });
        Ok(())
    }

    /// Finds out what a claim of unknown outcome brought, and gives it back.
    pub(super) fn resolve(&self, windlass: Windlass, mut doubt: Doubt) {
        let background = self.clone();
        let work = async move {
            let mut reconnect = Reconnect::default();
            loop {
                match doubt.ask(&windlass).await {
                    Ok(Found::Jobs(jobs)) => return background.give_back(&windlass, &jobs).await,
                    Ok(Found::Nothing) => return,
                    Ok(Found::NotYet) => {}
                    Err(error) if is_lasting(&error) => return,
                    Err(_) => {}
                }
                if !background.pause(&windlass, &mut reconnect).await {
                    return;
                }
            }
        };
        if let Err(error) = self.spawn(work) {
            tracing::warn!(%error, "what a claim brought is left until its leases run out");
        }
    }

    /// Gives jobs back that nobody received.
    pub(super) fn return_jobs(&self, windlass: Windlass, jobs: Vec<ClaimedJob>) {
        let background = self.clone();
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        let spawned = is_running.then(|| self.spawn(async move { background.give_back(&windlass, &jobs).await }));
        if !matches!(spawned, Some(Ok(()))) {
            tracing::warn!("jobs that nobody received are left until their leases run out");
        }
    }

    async fn give_back(&self, windlass: &Windlass, jobs: &[ClaimedJob]) {
        if jobs.is_empty() {
            return;
        }
        let leases: Vec<LeaseId> = jobs.iter().map(|job| job.lease).collect();
        let commits: Vec<_> = jobs.iter().map(|job| release(windlass, GIVEN_BACK_BY, job)).collect();
        let mut reconnect = Reconnect::default();
        while let Err(error) = commit(windlass, commits.clone(), leases.clone()).await {
            tracing::warn!(%error, count = jobs.len(), "jobs that nobody took cannot be given back yet");
            if is_lasting(&error) || !self.pause(windlass, &mut reconnect).await {
                return;
            }
        }
    }

    /// Waits before the store is asked again. Whether it should be: not when this process stops. Then leases run out.
    async fn pause(&self, windlass: &Windlass, reconnect: &mut Reconnect) -> bool {
        if self.stop.is_cancelled() {
            return false;
        }
        tokio::select! {
            () = reconnect.wait(windlass.clock(), windlass.random()) => {}
            () = self.stop.cancelled() => {}
        }
        true
    }
}

/// Whether asking again would not help.
fn is_lasting(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(_) | StoreError::Unknown(_) => false,
        StoreError::Corrupt { .. } | StoreError::Schema(_) | StoreError::Invalid(_) => true,
    }
}
