//! Actions on all jobs of a filter: count them first, then cancel or replay them a batch at a time.

use crate::client::jobs::Jobs;
use crate::store::{Cancelled, JobFilter, Page, Replay, ReplayOnly, Replayed, StoreError};
use windlass_core::JobId;

/// The most jobs that one call changes.
pub const MAX_BULK: u32 = 2_000;
/// Jobs read at once, with their payloads.
const READ_AT_ONCE: u32 = 500;

/// How many jobs match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number, or the cap if there are more.
    pub count: u64,
    /// Whether it is the exact number.
    pub is_exact: bool,
}

/// The result of one call of an action by filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BulkPage {
    /// Jobs that were changed.
    pub done: u64,
    /// Jobs that could not be changed any more: they had moved on.
    pub skipped: u64,
    /// Where the next call continues; `None` when all have been seen.
    pub next: Option<BulkCursor>,
}

/// Where an action by filter continues. Producers may be faster than the action, so it covers only the jobs that
/// existed when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkCursor {
    after: JobId,
    until: JobId,
}

impl Jobs<'_> {
    /// How many jobs match, exactly up to `cap`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count(&self, filter: &JobFilter, cap: u64) -> Result<Count, StoreError> {
        let (mut count, mut page) = (0, Page::newest(READ_AT_ONCE));
        loop {
            let jobs = self.list(filter, page).await?;
            count += jobs.len() as u64;
            page.after = jobs.last().map(|job| job.id);
            if count > cap {
                return Ok(Count { count: cap, is_exact: false });
            }
            if (jobs.len() as u32) < READ_AT_ONCE {
                return Ok(Count { count, is_exact: true });
            }
        }
    }

    /// Cancels up to [`MAX_BULK`] jobs of a filter, the oldest first, and records it in the audit with `what`: the
    /// filter in words. To continue, pass the cursor that the last call returned.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn cancel_matching(
        &self,
        filter: &JobFilter,
        what: &str,
        from: Option<BulkCursor>,
    ) -> Result<BulkPage, StoreError> {
        let (ids, next) = self.batch(filter, from).await?;
        if ids.is_empty() {
            return Ok(BulkPage::default());
        }
        let results = self.cancel_many(ids).await?;
        let is_done = |result: &&Cancelled| matches!(result, Cancelled::Now | Cancelled::Requested);
        let done = results.iter().filter(is_done).count() as u64;
        self.record("cancel", done, what).await?;
        Ok(BulkPage { done, skipped: results.len() as u64 - done, next })
    }

    /// Sends up to [`MAX_BULK`] jobs of a filter again, the oldest first, and records it in the audit with `what`.
    /// Waiting jobs become due now.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn replay_matching(
        &self,
        filter: &JobFilter,
        what: &str,
        from: Option<BulkCursor>,
    ) -> Result<BulkPage, StoreError> {
        let (ids, next) = self.batch(filter, from).await?;
        if ids.is_empty() {
            return Ok(BulkPage::default());
        }
        let replay = Replay { what: what.to_owned(), ..Replay::new(ids, ReplayOnly::Any, self.actor()) };
        let results = self.send_again(replay).await?;
        let is_done = |result: &&Replayed| matches!(result, Replayed::Queued | Replayed::AlreadyLive);
        let done = results.iter().filter(is_done).count() as u64;
        Ok(BulkPage { done, skipped: results.len() as u64 - done, next })
    }

    /// The next ids of a filter, the oldest first, and where to continue.
    async fn batch(
        &self,
        filter: &JobFilter,
        from: Option<BulkCursor>,
    ) -> Result<(Vec<JobId>, Option<BulkCursor>), StoreError> {
        let mut cursor = match from {
            Some(cursor) => cursor,
            None => match self.list(filter, Page::newest(1)).await?.first() {
                Some(job) => BulkCursor { after: JobId(0), until: job.id },
                None => return Ok((Vec::new(), None)),
            },
        };
        let mut ids = Vec::new();
        while (ids.len() as u32) < MAX_BULK {
            let page = Page { after: Some(cursor.after), ..Page::oldest(READ_AT_ONCE) };
            let jobs = self.list(filter, page).await?;
            let is_last = (jobs.len() as u32) < READ_AT_ONCE || jobs.last().is_some_and(|job| job.id >= cursor.until);
            ids.extend(jobs.iter().map(|job| job.id).filter(|id| *id <= cursor.until));
            if is_last {
                return Ok((ids, None));
            }
            cursor.after = ids.last().copied().unwrap_or(cursor.after);
        }
        Ok((ids, Some(cursor)))
    }
}
