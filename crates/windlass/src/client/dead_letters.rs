//! Dead letters: failed jobs that await manual action. List, group, replay and discard them, by id or by filter.

use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::job::Job;
use crate::store::replay::goes_on_at;
use crate::store::{
    DeadGroup, Discard, Discarded, JobFilter, MAX_BATCH, Page, Replay, ReplayOnly, Replayed, Scope, Spacing, Steps,
    StoreError,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use windlass_core::job::Tenant;
use windlass_core::{JobId, Millis, State, Timestamp};

/// Jobs read at once while ids are collected. Each read includes the payloads.
const READ_AT_ONCE: usize = 500;
/// The most audit entries searched for an earlier page of the same replay.
const LOOKED_AT: u32 = 1000;
/// How many ids the audit entry of a replay by ids lists.
const NAMED_IDS: usize = 20;

/// Failed jobs that await manual action. Made by [`Windlass::dead_letters`].
#[derive(Debug, Clone)]
pub struct DeadLetters<'a> {
    windlass: &'a Windlass,
    scope: Scope,
    by: String,
}

/// The result of one page of a replay by filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayedPage {
    /// Sent again by this call.
    pub done: u64,
    /// Whether there may be more jobs than one call takes: repeat it.
    pub more: bool,
    /// When the last of them is due.
    pub last_due: Option<Timestamp>,
}

/// The result of a replay by ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedIds {
    /// For each id, in the order given.
    pub results: Vec<Replayed>,
    /// When the last of those sent again is due; only of a spaced replay.
    pub last_due: Option<Timestamp>,
}

/// The result of one page of a discard by filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiscardedPage {
    /// How many were discarded by this call.
    pub done: u64,
    /// Which ones.
    pub ids: Vec<JobId>,
    /// Whether there may be more jobs than one call takes: repeat it.
    pub more: bool,
}

impl Windlass {
    /// The failed jobs that await manual action.
    ///
    /// ```
    /// use windlass::client::{JobFilter, Page, Spacing};
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let dead = windlass.dead_letters();
    /// for group in dead.groups(&JobFilter::default(), 10).await? {
    ///     println!("{} × {}: {}", group.count, group.error_class, group.message);
    /// }
    /// let of_kind = JobFilter { error_class: Some("Timeout".into()), ..JobFilter::default() };
    /// while dead.replay(of_kind.clone(), Spacing::NONE).await?.more {}
    /// dead.discard(JobFilter::default(), "the receiver is gone").await?;
    /// assert!(dead.list(&JobFilter::default(), Page::newest(10)).await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetters<'_> {
        DeadLetters { windlass: self, scope: Scope::All, by: BY_LIBRARY.into() }
    }
}

impl<'a> DeadLetters<'a> {
    /// The dead letters of one tenant, or of all.
    #[must_use]
    pub fn within(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// A failed job, discarded or not. `None` for a job in any other state.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let job = self.windlass.store().job(&self.scope, id).await?;
        Ok(job.filter(|job| job.state == State::Failed))
    }

    /// Dead letters that match, a page at a time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, filter: &JobFilter, page: Page) -> Result<Vec<Job>, StoreError> {
        let filter = JobFilter { dead_letters: true, ..filter.clone() };
        self.windlass.store().jobs(&self.scope, &filter, page).await
    }

    /// Dead letters that match, grouped by similar failures, the largest group first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn groups(&self, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>, StoreError> {
        let filter = JobFilter { dead_letters: true, ..filter.clone() };
        self.windlass.store().dead_groups(&self.scope, &filter, limit).await
    }

    /// How many dead letters of each group failed in each step of a span up to now, by tenant and fingerprint. Groups
    /// without any in that time are missing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn series(
        &self,
        filter: &JobFilter,
        span: impl Into<Millis>,
        step: impl Into<Millis>,
    ) -> Result<HashMap<(Tenant, String), Vec<u64>>, StoreError> {
        let steps = Steps::until(self.windlass.clock().now(), span.into(), step.into());
        let filter = JobFilter { dead_letters: true, ..filter.clone() };
        let mut series: HashMap<(Tenant, String), Vec<u64>> = HashMap::new();
        for count in self.windlass.store().dead_series(&self.scope, &filter, steps).await? {
            let group = series.entry((count.tenant, count.fingerprint));
            group.or_insert_with(|| vec![0; steps.count as usize])[count.step] += count.count;
        }
        Ok(series)
    }

    /// Sends the matching dead letters again, the oldest job first, up to 10,000 of them in one commit. Repeat it while
    /// there is more. A page of the same filter and spacing continues where the last one ended, even after an
    /// interruption, and no job is sent twice.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn replay(&self, filter: JobFilter, spacing: Spacing) -> Result<ReplayedPage, StoreError> {
        let what = in_words(&self.scope, &filter, spacing);
        let ids = self.ids(filter).await?;
        if ids.is_empty() {
            return Ok(ReplayedPage::default());
        }
        let from = match spacing {
            Spacing::NONE => None,
            _ => goes_on_at(&what, &self.windlass.store().audits(LOOKED_AT).await?),
        };
        let more = ids.len() == MAX_BATCH;
        let replay = Replay { spacing, from, what, ..self.replay_of(ids.clone()) };
        let replayed = self.windlass.replay_in(&self.scope, replay).await?;
        let last_due = self.last_due(&ids, &replayed).await?;
        Ok(ReplayedPage { done: count(&replayed, &Replayed::Queued), more, last_due })
    }

    /// Sends these dead letters again in one commit, spaced in the order given. Jobs that are not dead letters are
    /// unchanged.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn replay_ids(&self, ids: Vec<JobId>, spacing: Spacing) -> Result<ReplayedIds, StoreError> {
        let replay = Replay { spacing, what: named(&ids), ..self.replay_of(ids.clone()) };
        let results = self.windlass.replay_in(&self.scope, replay).await?;
        let last_due = match spacing {
            Spacing::NONE => None,
            _ => self.last_due(&ids, &results).await?,
        };
        Ok(ReplayedIds { results, last_due })
    }

    /// Declares the matching dead letters dealt with, the oldest first, up to 10,000 of them in one commit. They stay
    /// in the archive. Repeat it while there is more.
    ///
    /// # Errors
    /// The store cannot be read or written to.
    pub async fn discard(&self, filter: JobFilter, reason: &str) -> Result<DiscardedPage, StoreError> {
        let what = in_words(&self.scope, &filter, Spacing::NONE);
        let ids = self.ids(filter).await?;
        let more = ids.len() == MAX_BATCH;
        let results = self.discard_listed(ids.clone(), reason, what).await?;
        let discarded = ids.into_iter().zip(results).filter(|(_, result)| *result == Discarded::Done);
        let ids: Vec<JobId> = discarded.map(|(id, _)| id).collect();
        Ok(DiscardedPage { done: ids.len() as u64, ids, more })
    }

    /// Declares these dead letters dealt with. Returns an answer for each, in the order given.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn discard_ids(&self, ids: Vec<JobId>, reason: &str) -> Result<Vec<Discarded>, StoreError> {
        let what = named(&ids);
        self.discard_listed(ids, reason, what).await
    }

    async fn discard_listed(&self, ids: Vec<JobId>, reason: &str, what: String) -> Result<Vec<Discarded>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let discard = Discard { ids, reason: reason.to_owned(), by: self.by.clone(), what };
        let result = self.windlass.store().discard(&self.scope, discard).await;
        self.windlass.inner().record_contact(&result);
        result
    }

    fn replay_of(&self, ids: Vec<JobId>) -> Replay {
        Replay::new(ids, ReplayOnly::DeadLetters, self.by.clone())
    }

    /// When the last of the replayed jobs is due.
    async fn last_due(&self, ids: &[JobId], replayed: &[Replayed]) -> Result<Option<Timestamp>, StoreError> {
        let mut sent = ids.iter().zip(replayed).filter(|(_, result)| **result == Replayed::Queued);
        let Some((id, _)) = sent.next_back() else { return Ok(None) };
        Ok(self.windlass.store().job(&self.scope, *id).await?.map(|job| job.due_at))
    }

    /// Ids of matching dead letters, the oldest first, at most [`MAX_BATCH`].
    async fn ids(&self, filter: JobFilter) -> Result<Vec<JobId>, StoreError> {
        let mut ids: Vec<JobId> = Vec::new();
        while ids.len() < MAX_BATCH {
            let limit = READ_AT_ONCE.min(MAX_BATCH - ids.len());
            let page = Page { after: ids.last().copied(), ..Page::oldest(limit as u32) };
            let jobs = self.list(&filter, page).await?;
            ids.extend(jobs.iter().map(|job| job.id));
            if jobs.len() < limit {
                break;
            }
        }
        Ok(ids)
    }
}

fn count<T: PartialEq>(results: &[T], wanted: &T) -> u64 {
    results.iter().filter(|result| *result == wanted).count() as u64
}

/// Ids as the audit lists them: the first few.
fn named(ids: &[JobId]) -> String {
    let first: Vec<String> = ids.iter().take(NAMED_IDS).map(ToString::to_string).collect();
    let more = if ids.len() > first.len() { ", …" } else { "" };
    format!("dead letters {}{more}", first.join(", "))
}

/// The text of a replay by filter. Always the same for the same request, so that a repetition is recognised.
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
