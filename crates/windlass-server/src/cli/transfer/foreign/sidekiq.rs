//! Sidekiq: the JSON of its Redis lists `queue:…` and sorted sets `schedule` and `retry`.

use super::Foreign;
use super::read::{count, field, id, seconds, text};
use serde_json::{Value, json};

/// Retries of a job that does not say.
const RETRIES: u64 = 25;

pub(super) fn read(item: &Value, due: Option<f64>) -> Result<Foreign, String> {
    let class = text(item, &["class"]).ok_or("`class` is missing")?;
    // Active Job wraps the job's own class.
    let kind = text(item, &["wrapped"]).unwrap_or(class);
    let none = json!([]);
    let args = field(item, &["args"]).unwrap_or(&none);
    if !args.is_array() {
        return Err("`args` is not a list".into());
    }
    let mut job = Foreign::new(id(item, "jid"), kind, args)?;
    job.queue(text(item, &["queue"]).unwrap_or("default"))?;
    let at = due.or_else(|| field(item, &["at"]).and_then(Value::as_f64));
    job.due(at.map(seconds));
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
