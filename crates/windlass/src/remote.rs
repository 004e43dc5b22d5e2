//! For servers: jobs that were completed elsewhere, and attempts that ran elsewhere, told to logs and subscribers like those of
//! this process.

use crate::client::windlass::Windlass;
use crate::event::{Ended, Reporter};
use crate::job::{ClaimedJob, Job, NewJob};
use crate::store::{Atomicity, Commit, Enqueued, StoreError};
use crate::worker::next_firing;
use windlass_core::Next;

impl Windlass {
    /// Stores jobs that are whole already.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn enqueue_jobs(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>, StoreError> {
        self.store_jobs(jobs, atomicity).await
    }

    /// A remote worker was handed these jobs.
    pub fn remote_started(&self, worker: &str, jobs: &[ClaimedJob]) {
        let reporter = self.reporter(worker.into());
        let now = self.clock().now();
        jobs.iter().for_each(|job| reporter.started(job, now));
    }

    /// A remote worker's result was committed.
    pub async fn remote_ended(&self, worker: &str, job: &Job, commit: &Commit) {
        let reporter: Reporter = self.reporter(worker.into());
        let next_firing = match (commit.transition.next, job.schedule) {
            (Next::Failed(_), Some(schedule)) => next_firing(self, schedule).await,
            (Next::Failed(_) | Next::Succeeded | Next::Cancelled | Next::Wait { .. }, _) => None,
        };
        reporter.ended(&Ended {
            job,
            transition: commit.transition,
            error_class: commit.error_class.as_deref(),
            error: commit.error.as_deref(),
            started_at: commit.started_at,
            finished_at: commit.finished_at,
            next_firing,
        });
    }
}
