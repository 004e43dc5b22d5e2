//! Sidekiq: the JSON of its Redis lists `queue:…` and sorted sets `schedule` and `retry`.

use super::read::{count, field, id, seconds, text};
use super::{Dumped, Foreign};
use serde_json::Value;
use windlass_core::Timestamp;

/// Retries of a job that does not say.
const RETRIES: u64 = 25;
/// Numbers above it are milliseconds since 1970, others seconds.
const MOST_SECONDS: f64 = 1e11;

pub(super) fn read(dumped: &Dumped) -> Result<Foreign, String> {
    let item = &dumped.value;
    let class = text(item, &["class"]).ok_or("`class` is missing")?;
    // Active Job wraps the job's own class.
    let kind = text(item, &["wrapped"]).unwrap_or(class);
    let args = dumped.payload.as_deref().unwrap_or("[]");
    if !args.starts_with('[') {
        return Err("`args` is not a list".into());
    }
    let mut job = Foreign::new(id(item, "jid"), kind, args)?;
    job.queue(text(item, &["queue"]).unwrap_or("default"))?;
    // Redis lists the newest job of a queue first, so the order comes from the times.
    job.due(dumped.due.map(seconds).or_else(|| moment(item, "at")).or_else(|| moment(item, "enqueued_at")));
    let allowed = match field(item, &["retry"]) {
        None | Some(Value::Bool(true)) => RETRIES,
        Some(Value::Bool(false)) => 0,
        Some(_) => count(item, &["retry"]),
    };
    // The first failure is `retry_count` 0.
    let used = field(item, &["retry_count"]).map_or(0, |_| count(item, &["retry_count"]) + 1);
    job.retries_left(allowed, used);
    if field(item, &["bid"]).is_some() {
        job.notes.push("batches are not kept: no callback follows".into());
    }
    if field(item, &["unique_for"]).is_some() {
        job.notes.push("unique_for is not kept: set an idempotency key when you enqueue".into());
    }
    Ok(job)
}

/// A time of a job: seconds until Sidekiq 7, milliseconds from 8 on.
fn moment(item: &Value, name: &str) -> Option<Timestamp> {
    let given = field(item, &[name]).and_then(Value::as_f64)?;
    Some(seconds(if given > MOST_SECONDS { given / 1000.0 } else { given }))
}
