//! Purge: cancels the waiting jobs of a queue, all of them or some at a time.

use super::Queues;
use crate::store::{Cancelled, JobFilter, Page, StoreError};
use std::fmt;
use std::str::FromStr;
use windlass_core::job::QueueName;
use windlass_core::{JobId, State};

/// Jobs cancelled in one commit.
const BATCH: u32 = 1000;

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Purged {
    /// Waiting jobs that were cancelled. Running ones are left alone.
    pub cancelled: u64,
    /// Where to continue; `None` when nothing is left. Only a purge with a limit stops earlier.
    pub next: Option<PurgeCursor>,
}

/// Where a purge continues. Producers may be faster than a purge, so it covers only the jobs that waited when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeCursor {
    after: Option<JobId>,
    until: JobId,
}

impl Queues<'_> {
    /// Cancels every waiting job of the queues of this name.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn purge(&self, name: &QueueName) -> Result<Purged, StoreError> {
        self.purge_some(name, u32::MAX, None).await
    }

    /// Cancels up to `most` of those jobs. To continue, pass the cursor that the last call returned.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn purge_some(
        &self,
        name: &QueueName,
        most: u32,
        from: Option<PurgeCursor>,
    ) -> Result<Purged, StoreError> {
        // One purge is one line of the audit, however many pages it takes: the first page writes it.
        let waiting = if from.is_none() { self.count_waiting(name).await? } else { 0 };
        let purged = self.cancel_waiting(name, most, from).await?;
        match purged.next {
            None if from.is_none() => self.record("purge queue", purged.cancelled, format!("queue {name}")).await?,
            Some(cursor) if from.is_none() => {
                let detail = format!("queue {name}, jobs up to {}", cursor.until);
                self.record("purge queue", waiting.max(purged.cancelled), detail).await?;
            }
            Some(_) | None => {}
        }
        Ok(purged)
    }

    /// How many jobs wait in the queues of this name.
    async fn count_waiting(&self, name: &QueueName) -> Result<u64, StoreError> {
        let store = self.windlass.store();
        let queues = store.queues().await?;
        let is_meant = |id| queues.iter().any(|q| q.id == id && q.name == *name && self.scope.covers(&q.tenant));
        let depths = store.depths(&self.scope).await?;
        Ok(depths.iter().filter(|depth| is_meant(depth.queue)).map(|depth| depth.due + depth.later).sum())
    }

    async fn cancel_waiting(
        &self,
        name: &QueueName,
        most: u32,
        from: Option<PurgeCursor>,
    ) -> Result<Purged, StoreError> {
        let jobs = self.windlass.jobs().within(&self.scope);
        let states = vec![State::Queued, State::Retrying];
        let filter = JobFilter { states, queue: Some(name.clone()), ..JobFilter::default() };
        let mut cursor = match from {
            Some(cursor) => cursor,
            None => match jobs.list(&filter, Page::newest(1)).await?.first() {
                Some(job) => PurgeCursor { after: None, until: job.id },
                None => return Ok(Purged::default()),
            },
        };
        let (mut cancelled, mut left) = (0, most);
        while left > 0 {
            let page = Page { after: cursor.after, ..Page::oldest(BATCH.min(left)) };
            let mut ids: Vec<JobId> = jobs.list(&filter, page).await?.iter().map(|job| job.id).collect();
            ids.retain(|id| *id <= cursor.until);
            let Some(last) = ids.last().copied() else { return Ok(Purged { cancelled, next: None }) };
            left = left.saturating_sub(u32::try_from(ids.len()).unwrap_or(u32::MAX));
            let results = jobs.cancel_many(ids).await?;
            cancelled += results.iter().filter(|result| **result == Cancelled::Now).count() as u64;
            cursor.after = Some(last);
        }
        Ok(Purged { cancelled, next: Some(cursor) })
    }
}

/// `AFTER-UNTIL`
impl fmt::Display for PurgeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.after.unwrap_or(JobId(0)), self.until)
    }
}

impl FromStr for PurgeCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ids = text.split_once('-').and_then(|(after, until)| Some((after.parse().ok()?, until.parse().ok()?)));
        let (after, until) = ids.ok_or("must be the `next` of an earlier purge")?;
        Ok(Self { after: Some(JobId(after)), until: JobId(until) })
    }
}
