//! Dead letters by filter: sent again a page at a time, in their original order, spaced as one sequence.

use crate::client::windlass::Windlass;
use crate::store::replay::goes_on_at;
use crate::store::{JobFilter, MAX_BATCH, Order, Page, Replay, ReplayOnly, Replayed, Scope, Spacing, StoreError};
use std::fmt::Write as _;
use windlass_core::{JobId, Timestamp};

/// Jobs read at once while ids are gathered: their payloads come along.
const READ_AT_ONCE: usize = 500;
/// Lines of the audit among which an earlier page of the same replay is looked for.
const LOOKED_AT: u32 = 1000;

/// What one page of a replay by filter came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayedPage {
    /// Sent again by this call.
    pub done: u64,
    /// Whether there may be more than one call takes: repeat it.
    pub more: bool,
    /// When the last of them is due.
    pub last_due: Option<Timestamp>,
}

impl Windlass {
    /// Sends the dead letters that match again, the oldest job first, up to [`MAX_BATCH`] of them in one commit. Repeat it while
    /// there is more: a page of the same filter and spacing goes on where the last one ended, however it was interrupted,
    /// and no job is sent twice.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn replay_dead_letters(
        &self,
        scope: &Scope,
        filter: JobFilter,
        spacing: Spacing,
        by: &str,
    ) -> Result<ReplayedPage, StoreError> {
        let what = in_words(scope, &filter, spacing);
        let ids = self.dead_letter_ids(scope, filter).await?;
        if ids.is_empty() {
            return Ok(ReplayedPage::default());
        }
        let from = match spacing {
            Spacing::NONE => None,
            _ => goes_on_at(&what, &self.store().audits(LOOKED_AT).await?),
        };
        let more = ids.len() == MAX_BATCH;
        let replay = Replay { spacing, from, what, ..Replay::new(ids.clone(), ReplayOnly::DeadLetters, by) };
        let replayed = self.replay_in(scope, replay).await?;
        let sent = || ids.iter().zip(&replayed).filter(|(_, result)| **result == Replayed::Queued).map(|(id, _)| *id);
        let last = match sent().next_back() {
            Some(id) => self.store().job(scope, id).await?,
            None => None,
        };
        Ok(ReplayedPage { done: sent().count() as u64, more, last_due: last.map(|job| job.due_at) })
    }

    /// Ids of dead letters that match, the oldest first, at most [`MAX_BATCH`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn dead_letter_ids(&self, scope: &Scope, filter: JobFilter) -> Result<Vec<JobId>, StoreError> {
        let filter = JobFilter { dead_letters: true, ..filter };
        let mut ids: Vec<JobId> = Vec::new();
        while ids.len() < MAX_BATCH {
            let limit = READ_AT_ONCE.min(MAX_BATCH - ids.len());
            let page = Page { after: ids.last().copied(), limit: limit as u32, order: Order::OldestFirst };
            let jobs = self.store().jobs(scope, &filter, page).await?;
            ids.extend(jobs.iter().map(|job| job.id));
            if jobs.len() < limit {
                break;
            }
        }
        Ok(ids)
    }
}

/// What a replay by filter was asked for, always in the same words.
fn in_words(scope: &Scope, filter: &JobFilter, spacing: Spacing) -> String {
    let own = match scope {
        Scope::All => None,
        Scope::Tenant(tenant) => Some(tenant),
    };
    let parts = [
        ("tenant", own.or(filter.tenant.as_ref()).map(ToString::to_string)),
        ("queue", filter.queue.as_ref().map(ToString::to_string)),
        ("kind", filter.kind.as_ref().map(ToString::to_string)),
        ("class", filter.error_class.clone()),
        ("since", filter.since.map(|at| at.to_string())),
        ("fingerprint", filter.fingerprint.clone()),
    ];
    let mut words = String::from("dead letters");
    for (name, value) in parts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        // Writing to a String cannot fail.
        let _ = write!(words, " {name}={value:?}");
    }
    if spacing != Spacing::NONE {
        let _ = write!(words, ", {spacing}");
    }
    words
}
