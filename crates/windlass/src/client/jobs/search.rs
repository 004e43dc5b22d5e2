//! Search: jobs by a text, newest first, up to a bound. It says how far it looked.

use crate::client::jobs::Jobs;
use crate::job::Job;
use crate::store::{JobFilter, Page, StoreError};
use windlass_core::JobId;

/// The most jobs that one search looks at.
pub const MAX_SEARCHED: u32 = 10_000;
/// Jobs read at once, with their payloads.
const READ_AT_ONCE: u32 = 500;

/// What a search found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The jobs that match, newest first.
    pub jobs: Vec<Job>,
    /// How many jobs it looked at.
    pub searched: u32,
    /// Whether it looked at all jobs of the filter. If not, older ones may match too: narrow the filter.
    pub is_complete: bool,
    /// Whether values are sealed in the store: then payloads and errors were not searched.
    pub is_sealed: bool,
}

impl Jobs<'_> {
    /// The jobs of a filter that contain a text in their id, idempotency key, limit key, last error or payload. Letters
    /// match in either case. Newest first, at most `limit` of them; looks at [`MAX_SEARCHED`] jobs at most.
    ///
    /// Where values are sealed, payloads and errors are not searched: say so to whoever asks ([`Found::is_sealed`]).
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn search(&self, text: &str, filter: &JobFilter, limit: u32) -> Result<Found, StoreError> {
        let text = text.to_lowercase();
        let is_sealed = self.windlass.inner().is_sealing();
        let mut found = Found { jobs: Vec::new(), searched: 0, is_complete: false, is_sealed };
        if let Some(job) = self.by_id(&text, filter).await? {
            found.jobs.push(job);
        }
        let mut page = Page::newest(READ_AT_ONCE);
        while found.searched < MAX_SEARCHED && (found.jobs.len() as u32) < limit {
            page.limit = READ_AT_ONCE.min(MAX_SEARCHED - found.searched);
            let jobs = self.list(filter, page).await?;
            found.searched += jobs.len() as u32;
            found.is_complete = (jobs.len() as u32) < page.limit;
            page.after = jobs.last().map(|job| job.id);
            let first = found.jobs.first().map(|job| job.id);
            found.jobs.extend(jobs.into_iter().filter(|job| Some(job.id) != first && contains(job, &text, is_sealed)));
            if found.is_complete {
                break;
            }
        }
        if found.jobs.len() as u32 > limit {
            found.jobs.truncate(limit as usize);
            found.is_complete = false;
        }
        Ok(found)
    }

    /// The job whose id the text is, however old it is.
    async fn by_id(&self, text: &str, filter: &JobFilter) -> Result<Option<Job>, StoreError> {
        let Ok(id) = text.parse().map(JobId) else { return Ok(None) };
        let Some(after) = id.0.checked_add(1).map(JobId) else { return Ok(None) };
        let page = Page { after: Some(after), ..Page::newest(1) };
        Ok(self.list(filter, page).await?.into_iter().find(|job| job.id == id))
    }
}

fn contains(job: &Job, text: &str, is_sealed: bool) -> bool {
    let has = |value: &str| value.to_lowercase().contains(text);
    !is_sealed && (has(&job.payload) || job.error.as_deref().is_some_and(has))
        || job.idempotency_key.as_deref().is_some_and(has)
        || job.limit_key.as_deref().is_some_and(has)
        || job.error_class.as_deref().is_some_and(has)
        || job.id.to_string() == text
}
