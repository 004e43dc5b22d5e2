//! Background: work that outlives the request that started it. A claim is never dropped halfway. Jobs that nobody
//! received are given back, however long the store is unreachable: an outage must cost no job an attempt.

use crate::client::windlass::Windlass;
use crate::job::{ClaimedJob, LeaseId};
use crate::leases::commit::{commit, release};
use crate::leases::doubt::{Doubt, Found};
use crate::leases::limits::MAX_TASKS;
use crate::leases::outage::store_failed;
use crate::leases::reconnect::Reconnect;
use crate::store::StoreError;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The worker name in the ledger for jobs that are given back, because no worker received them.
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

    /// Runs `work` to its end, even if the caller is dropped. At most [`MAX_TASKS`] at a time.
    ///
    /// # Errors
    /// [`MAX_TASKS`] tasks are running already.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), StoreError> {
        let permit = self.permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| StoreError::unavailable("too many claims of remote workers are under way"))?;
        self.tasks.spawn(async move {
            work.await;
            drop(permit);
        });
        Ok(())
    }

    /// Finds the jobs of a claim of unknown outcome and gives them back.
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
            tracing::warn!(%error, "the jobs of a claim stay claimed until their leases run out");
        }
    }

    /// Gives back jobs that nobody received.
    pub(super) fn return_jobs(&self, windlass: Windlass, jobs: Vec<ClaimedJob>) {
        let background = self.clone();
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        let spawned = is_running.then(|| self.spawn(async move { background.give_back(&windlass, &jobs).await }));
        if !matches!(spawned, Some(Ok(()))) {
            tracing::warn!("jobs that nobody received stay claimed until their leases run out");
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
            store_failed!(error, count = jobs.len(), "jobs that nobody received cannot be given back yet");
            if is_lasting(&error) || !self.pause(windlass, &mut reconnect).await {
                return;
            }
        }
    }

    /// Waits before the store is asked again. Returns `false` if this process is already stopping.
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

/// Whether repeating the call would not help.
fn is_lasting(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(_) | StoreError::Unknown(_) => false,
        StoreError::Corrupt { .. } | StoreError::Sealed(_) | StoreError::Schema(_) | StoreError::Invalid(_) => true,
    }
}
