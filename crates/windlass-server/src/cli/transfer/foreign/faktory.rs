//! Faktory: the JSON of its Redis lists (the queues) and sorted sets `scheduled` and `retries`. A job is stored as the
//! Faktory listener stores one that is pushed, so Faktory workers get it unchanged.

use super::read::{count, field, id, seconds, text};
use super::{Dumped, Foreign, near};
use windlass::protocol::Catalogue;
use windlass_core::Timestamp;

pub(super) fn read(dumped: &Dumped, catalogue: &Catalogue) -> Result<Foreign, String> {
    let value = &dumped.value;
    let queue = text(value, &["queue"]).filter(|name| !name.is_empty()).unwrap_or("default");
    let draft = crate::faktory::pushed(&dumped.text, &near(queue)?, catalogue)?;
    let mut job = Foreign { id: id(value, "jid"), draft, notes: Vec::new() };
    job.queue(queue)?;
    // Redis lists the newest job of a queue first, so the order comes from the times.
    job.due(dumped.due.map(seconds).or_else(|| text(value, &["enqueued_at"]).and_then(Timestamp::parse)));
    if let Some(failure) = field(value, &["failure"]) {
        let allowed = job.draft.retry.max_retries.map_or(0, u64::from);
        // The first failure is `retry_count` 0.
        job.retries_left(allowed, count(failure, &["retry_count"]) + 1);
    }
    let custom = field(value, &["custom"]);
    if custom.and_then(|custom| field(custom, &["bid"])).is_some() {
        job.notes.push("batches are not kept: no callback follows".into());
    }
    if custom.and_then(|custom| field(custom, &["unique_for"])).is_some() {
        job.notes.push("unique_for does not count for the imported job: a push of the same job is stored".into());
    }
    Ok(job)
}
