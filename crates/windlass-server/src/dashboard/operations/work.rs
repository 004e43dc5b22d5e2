//! What long actions do, one batch at a time. Each batch is one commit with its own entry in the audit.

use super::Step;
use windlass::client::{BulkCursor, BulkPage, JobFilter, MAX_BULK, PurgeCursor, Scope, Spacing};
use windlass::{JobId, Priority, StoreError, Windlass};
use windlass_core::job::QueueName;

/// Waiting jobs that one batch of a purge cancels.
const PURGED_AT_ONCE: u32 = 2_000;

/// A long action.
#[derive(Debug)]
pub(crate) enum Work {
    Cancel {
        filter: JobFilter,
        words: String,
        cursor: Option<BulkCursor>,
    },
    Replay {
        filter: JobFilter,
        words: String,
        cursor: Option<BulkCursor>,
    },
    Prioritize {
        filter: JobFilter,
        priority: Priority,
        words: String,
        cursor: Option<BulkCursor>,
    },
    /// Sends the jobs again that an operation ended.
    Undo {
        ids: Vec<JobId>,
        words: String,
    },
    ReplayDead {
        filter: JobFilter,
        spacing: Spacing,
    },
    DiscardDead {
        filter: JobFilter,
        reason: String,
    },
    Purge {
        queue: QueueName,
        cursor: Option<PurgeCursor>,
    },
}

impl Work {
    /// Whether an undo can send the changed jobs again.
    pub(super) fn ends_jobs(&self) -> bool {
        match self {
            Self::Cancel { .. } | Self::DiscardDead { .. } => true,
            Self::Replay { .. }
            | Self::Prioritize { .. }
            | Self::Undo { .. }
            | Self::ReplayDead { .. }
            | Self::Purge { .. } => false,
        }
    }

    pub(super) async fn step(&mut self, windlass: &Windlass, scope: &Scope, by: &str) -> Result<Step, StoreError> {
        let jobs = windlass.jobs().within(scope).by(by);
        let dead = windlass.dead_letters().within(scope).by(by);
        match self {
            Self::Cancel { filter, words, cursor } => {
                Ok(moved(cursor, jobs.cancel_matching(filter, words, *cursor).await?))
            }
            Self::Replay { filter, words, cursor } => {
                Ok(moved(cursor, jobs.replay_matching(filter, words, *cursor).await?))
            }
            Self::Prioritize { filter, priority, words, cursor } => {
                Ok(moved(cursor, jobs.prioritize_matching(filter, *priority, words, *cursor).await?))
            }
            Self::Undo { ids, words } => {
                let next: Vec<JobId> = ids.drain(..ids.len().min(MAX_BULK as usize)).collect();
                let page = jobs.undo_end(&next, words).await?;
                Ok(Step { skipped: page.skipped, ..Step::new(page.changed.len() as u64, !ids.is_empty()) })
            }
            Self::ReplayDead { filter, spacing } => {
                let page = dead.replay(filter.clone(), *spacing).await?;
                let last_due = page.last_due.filter(|_| *spacing != Spacing::NONE);
                Ok(Step { last_due, ..Step::new(page.done, page.more) })
            }
            Self::DiscardDead { filter, reason } => {
                let page = dead.discard(filter.clone(), reason).await?;
                Ok(Step { changed: page.ids, ..Step::new(page.done, page.more) })
            }
            Self::Purge { queue, cursor } => {
                let queues = windlass.queues().within(scope).by(by);
                let page = queues.purge_some(queue, PURGED_AT_ONCE, *cursor).await?;
                *cursor = page.next;
                Ok(Step::new(page.cancelled, page.next.is_some()))
            }
        }
    }
}

fn moved(cursor: &mut Option<BulkCursor>, page: BulkPage) -> Step {
    *cursor = page.next;
    let step = Step::new(page.changed.len() as u64, page.next.is_some());
    Step { skipped: page.skipped, changed: page.changed, ..step }
}
