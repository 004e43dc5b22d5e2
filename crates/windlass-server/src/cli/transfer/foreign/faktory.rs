//! Faktory: the JSON of its Redis lists (the queues) and sorted sets `scheduled` and `retries`. A job is stored as the
//! Faktory listener stores one that is pushed, so Faktory workers get it unchanged.

use super::Foreign;
use super::read::{count, field, id, seconds};
use serde_json::Value;
use windlass::protocol::Catalogue;

pub(super) fn read(item: &str, value: &Value, due: Option<f64>, catalogue: &Catalogue) -> Result<Foreign, String> {
    let mut job = Foreign { id: id(value, "jid"), draft: crate::faktory::pushed(item, catalogue)?, notes: Vec::new() };
    job.due(due.map(seconds));
    if let Some(failure) = field(value, &["failure"]) {
        let allowed = job.draft.retry.max_retries.map_or(0, u64::from);
        // The first failure is `retry_count` 0.
        job.retries_left(allowed, count(failure, &["retry_count"]) + 1);
    }
    if field(value, &["custom"]).and_then(|custom| field(custom, &["bid"])).is_some() {
        job.notes.push("batches are not kept: no callback follows".into());
    }
    Ok(job)
}
