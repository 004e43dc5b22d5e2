//! Moving everything to another store: jobs with their history are read in pages and stored in batches, ids kept.

use super::*;
use crate::job::Job;
use async_trait::async_trait;
use windlass_core::{Attempt, JobId, Timestamp};

/// The server setting that says how far an import has come. Every batch changes it in its own commit.
pub(crate) const IMPORT: &str = "import";

/// A job with everything that is known of it.
#[derive(Debug, Clone)]
pub struct JobCopy {
    /// The job, as it is now.
    pub job: Job,
    /// All attempts that have ended, oldest first.
    pub attempts: Vec<Attempt>,
    /// How long its idempotency key still refers to it; `None` if it no longer does.
    pub key: Option<KeyHeld>,
}

impl JobCopy {
    /// The trace of the attempt that ended the job. A job that was not started in time ended without one.
    #[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
    pub(crate) fn last_trace(&self) -> Option<&str> {
        let last = self.attempts.last().filter(|_| self.job.reason != Some(windlass_core::Reason::Expired));
        last.and_then(|attempt| attempt.trace.as_deref())
    }
}

/// How long an idempotency key refers to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeld {
    /// Until this moment.
    Until(Timestamp),
    /// As long as the job is live.
    Live,
}

impl KeyHeld {
    /// The moment, if there is one.
    pub(crate) const fn until(self) -> Option<Timestamp> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Live => None,
        }
    }

    pub(crate) fn from_until(until: Option<Timestamp>) -> Self {
        until.map_or(Self::Live, Self::Until)
    }
}

/// Where an import comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The id of the installation, which the store takes over: ids that other systems see stay the same.
    pub installation: String,
    /// The highest id in use there. New jobs get higher ones from the first batch on.
    pub last_id: JobId,
}

/// One batch of an import, stored as a whole or not at all.
#[derive(Debug, Clone)]
pub struct Import {
    /// Set for the first batch, which only a store without jobs and schedules takes.
    pub origin: Option<Origin>,
    /// How far the import was before this batch: the text of its setting.
    pub before: Option<String>,
    /// How far it is afterwards.
    pub after: String,
    /// Schedules.
    pub schedules: Vec<Schedule>,
    /// Jobs that wait or have finished.
    pub jobs: Vec<JobCopy>,
}

/// The result of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imported {
    /// It is stored.
    Done {
        /// How many of its records had an id that the store has already. They were left as they are.
        existing: u64,
    },
    /// The first batch, and the store has jobs or schedules: nothing changed.
    NotEmpty,
    /// The import is not where the caller left it: another one is under way. Nothing changed.
    Overtaken,
}

/// Moving everything to another store.
#[async_trait]
pub trait Transfer: std::fmt::Debug + Send + Sync {
    /// The next jobs after an id in the order of ids, live and archived, each with its history, in one snapshot.
    async fn copies(&self, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>>;

    /// The highest id that was ever given to a job or schedule. Jobs that are gone count too: other systems have seen
    /// their ids.
    async fn last_id(&self) -> Result<JobId>;

    /// Stores a batch: ids, times and attempts as they are, nothing counted in the statistics. A job is due as soon as
    /// its batch is stored.
    async fn import(&self, import: Import) -> Result<Imported>;
}
