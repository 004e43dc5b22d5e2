//! BullMQ: jobs as its own library reads them, one JSON object each.

use super::read::{count, field, id, text};
use super::{Dumped, Foreign};
use serde_json::{Value, json};
use windlass_core::{Priority, Timestamp};

pub(super) fn read(dumped: &Dumped) -> Result<Foreign, String> {
    let item = &dumped.value;
    let name = text(item, &["name"]).ok_or("`name` is missing")?;
    let none = json!({});
    let opts = field(item, &["opts"]).unwrap_or(&none);
    if field(opts, &["repeat"]).is_some() || field(item, &["repeatJobKey"]).is_some() {
        return Err("it repeats there: make a schedule with `windlass schedules add`".into());
    }
    let is_parent = text(item, &["state"]) == Some("waiting-children");
    if is_parent || field(opts, &["parent"]).is_some() || field(item, &["parentKey"]).is_some() {
        return Err("it is part of a flow, and flows are not kept".into());
    }
    if field(item, &["finishedOn"]).is_some() {
        return Err("it has finished: only jobs that wait are taken".into());
    }
    let queue = text(item, &["queue"]).ok_or("`queue` is missing: the dump needs the queue's name")?;
    // Ids are numbers that each queue counts by itself.
    let number = id(item, "id");
    let id = if number.is_empty() { number } else { format!("{queue}:{number}") };
    let mut job = Foreign::new(id, name, dumped.payload.as_deref().unwrap_or("{}"))?;
    job.queue(queue)?;
    job.due(due(item));
    // Jobs without a priority run before all others there.
    job.draft.priority = if count(opts, &["priority"]) > 0 { Priority::Low } else { Priority::Normal };
    job.retries_left(count(opts, &["attempts"]).saturating_sub(1), count(item, &["attemptsMade"]));
    backoff(&mut job, field(opts, &["backoff"]))?;
    let is_retry = count(item, &["delay"]) > 0 && count(item, &["attemptsMade"]) > 0;
    if is_retry && field(item, &["processedOn"]).is_none() {
        job.notes.push("the dump does not say when the last attempt began: the retry may start too early".into());
    }
    if field(opts, &["deduplication", "debounce"]).is_some() {
        job.notes.push("deduplication is not kept: set an idempotency key when you enqueue".into());
    }
    Ok(job)
}

/// When it is due: its delay counts from when it was added, or, for a retry, from when its last attempt began. A job
/// without a delay has been due since it was added; Redis lists the newest of them first.
fn due(item: &Value) -> Option<Timestamp> {
    let (added, begun, delay) = (count(item, &["timestamp"]), count(item, &["processedOn"]), count(item, &["delay"]));
    let from = if delay > 0 && begun > 0 { begun } else { added };
    (from > 0).then(|| Timestamp::from_millis(i64::try_from(from.saturating_add(delay)).unwrap_or(i64::MAX)))
}

fn backoff(job: &mut Foreign, given: Option<&Value>) -> Result<(), String> {
    let fixed = |ms: u64| format!("fixed:base={ms}ms,jitter=none,cap=none");
    let Some(given) = given else { return job.delays(&fixed(0)) };
    let delay = given.as_u64().unwrap_or_else(|| count(given, &["delay"])).min(86_400_000);
    match text(given, &["type"]) {
        None | Some("fixed") => job.delays(&fixed(delay)),
        Some("exponential") => job.delays(&format!("exponential:base={}ms,jitter=none,cap=none", delay.max(1))),
        Some(own) => {
            job.notes.push(format!("the backoff `{own}` is code there: the queue's policy decides here"));
            Ok(())
        }
    }
}
