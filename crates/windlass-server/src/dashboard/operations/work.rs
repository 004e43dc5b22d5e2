//! What long actions do, one batch at a time. Each batch is one commit with its own entry in the audit.

use super::Step;
use windlass::client::{BulkCursor, JobFilter, PurgeCursor, Scope, Spacing};
use windlass::{StoreError, Windlass};
use windlass_core::job::QueueName;

/// Waiting jobs that one batch of a purge cancels.
const PURGED_AT_ONCE: u32 = 2_000;

/// A long action.
#[derive(Debug)]
pub(crate) enum Work {
    Cancel { filter: JobFilter, words: String, cursor: Option<BulkCursor> },
    Replay { filter: JobFilter, words: String, cursor: Option<BulkCursor> },
    ReplayDead { filter: JobFilter, spacing: Spacing },
    DiscardDead { filter: JobFilter, reason: String },
    Purge { queue: QueueName, cursor: Option<PurgeCursor> },
}

impl Work {
    pub(super) async fn step(&mut self, windlass: &Windlass, scope: &Scope, by: &str) -> Result<Step, StoreError> {
        let jobs = windlass.jobs().within(scope).by(by);
        let dead = windlass.dead_letters().within(scope).by(by);
        match self {
            Self::Cancel { filter, words, cursor } => {
                let page = jobs.cancel_matching(filter, words, *cursor).await?;
                *cursor = page.next;
                Ok(Step { skipped: page.skipped, ..Step::new(page.done, page.next.is_some()) })
            }
            Self::Replay { filter, words, cursor } => {
                let page = jobs.replay_matching(filter, words, *cursor).await?;
                *cursor = page.next;
                Ok(Step { skipped: page.skipped, ..Step::new(page.done, page.next.is_some()) })
            }
            Self::ReplayDead { filter, spacing } => {
                let page = dead.replay(filter.clone(), *spacing).await?;
                let last_due = page.last_due.filter(|_| *spacing != Spacing::NONE);
                Ok(Step { last_due, ..Step::new(page.done, page.more) })
            }
            Self::DiscardDead { filter, reason } => {
                let page = dead.discard(filter.clone(), reason).await?;
                Ok(Step::new(page.done, page.more))
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
