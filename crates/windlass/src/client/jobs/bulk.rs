//! Actions on all jobs of a filter: count them first, then change them a batch at a time, and undo what ended them.

use crate::client::jobs::Jobs;
use crate::job::Job;
use crate::store::{Amend, Amended, Cancelled, JobFilter, Page, Replay, ReplayOnly, Replayed, StoreError};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use windlass_core::{JobId, Priority, State};

/// The most jobs that one call changes.
pub const MAX_BULK: u32 = 2_000;
/// Jobs read at once, with their payloads.
const READ_AT_ONCE: u32 = 500;
/// Jobs whose priority is changed at the same time.
const AMENDED_AT_ONCE: usize = 32;

/// How many jobs match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number, or the cap if there are more.
    pub count: u64,
    /// Whether it is the exact number.
    pub is_exact: bool,
}

/// The result of one call of an action by filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BulkPage {
    /// Jobs that were changed.
    pub changed: Vec<JobId>,
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

impl BulkPage {
    /// The page of a batch: one result for each id.
    fn of<T>(ids: &[JobId], results: &[T], is_done: impl Fn(&T) -> bool, next: Option<BulkCursor>) -> Self {
        let done = ids.iter().zip(results).filter(|(_, result)| is_done(result));
        let changed: Vec<JobId> = done.map(|(id, _)| *id).collect();
        Self { skipped: (ids.len() - changed.len()) as u64, changed, next }
    }
}

/// Whether an operator ended the job, and nobody sent it again since.
fn is_ended_by_hand(job: &Job) -> bool {
    match job.state {
        State::Cancelled => true,
        State::Failed => job.discarded_at.is_some(),
        State::Queued | State::Running | State::Retrying | State::Succeeded => false,
    }
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
        let results = self.cancel_many(ids.clone()).await?;
        let is_done = |result: &Cancelled| matches!(result, Cancelled::Now | Cancelled::Requested);
        let page = BulkPage::of(&ids, &results, is_done, next);
        self.record("cancel", page.changed.len() as u64, what).await?;
        Ok(page)
    }

    /// Gives up to [`MAX_BULK`] waiting jobs of a filter another priority, the oldest first, and records it in the
    /// audit with `what`.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn prioritize_matching(
        &self,
        filter: &JobFilter,
        priority: Priority,
        what: &str,
        from: Option<BulkCursor>,
    ) -> Result<BulkPage, StoreError> {
        let (ids, next) = self.batch(filter, from).await?;
        if ids.is_empty() {
            return Ok(BulkPage::default());
        }
        let change = Amend { priority: Some(priority), run_at: None };
        let amending = stream::iter(ids.clone()).map(|id| self.amend(id, change)).buffered(AMENDED_AT_ONCE);
        let results: Vec<Amended> = amending.try_collect().await?;
        let page = BulkPage::of(&ids, &results, |result| *result == Amended::Done, next);
        self.record("change priority", page.changed.len() as u64, what).await?;
        Ok(page)
    }

    /// Sends jobs again that a cancel or a discard ended, and that are still as it left them: cancelled, or failed and
    /// discarded. At most [`MAX_BULK`] of them; the audit gets `what`.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn undo_end(&self, ids: &[JobId], what: &str) -> Result<BulkPage, StoreError> {
        let found = self.get_many(&ids[..ids.len().min(MAX_BULK as usize)]).await?;
        let kept: Vec<JobId> = found.iter().filter(|job| is_ended_by_hand(job)).map(|job| job.id).collect();
        if kept.is_empty() {
            return Ok(BulkPage { skipped: ids.len() as u64, ..BulkPage::default() });
        }
        let replay = Replay { what: what.to_owned(), ..Replay::new(kept.clone(), ReplayOnly::Any, self.actor()) };
        let results = self.send_again(replay).await?;
        let page = BulkPage::of(&kept, &results, |result| *result == Replayed::Queued, None);
        Ok(BulkPage { skipped: (ids.len() - page.changed.len()) as u64, ..page })
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
        let replay = Replay { what: what.to_owned(), ..Replay::new(ids.clone(), ReplayOnly::Any, self.actor()) };
        let results = self.send_again(replay).await?;
        let is_done = |result: &Replayed| matches!(result, Replayed::Queued | Replayed::AlreadyLive);
        Ok(BulkPage::of(&ids, &results, is_done, next))
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
