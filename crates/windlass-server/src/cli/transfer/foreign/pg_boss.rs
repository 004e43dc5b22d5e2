//! pg-boss: rows of the table `pgboss.job`, of versions with and without underscores in the names of columns.

use super::Foreign;
use super::read::{count, field, id, moment, text, whole};
use serde_json::{Value, json};
use windlass_core::Priority;

/// Queues that pg-boss uses itself.
const OWN: &str = "__pgboss__";

pub(super) fn read(row: &Value) -> Result<Foreign, String> {
    let name = text(row, &["name"]).ok_or("`name`, the queue, is missing")?;
    if name.starts_with(OWN) {
        return Err(format!("`{name}` is a queue of pg-boss itself"));
    }
    match text(row, &["state"]).ok_or("`state` is missing")? {
        "created" | "retry" => {}
        "active" => return Err("it runs there: stop its workers first, so that it waits again".into()),
        other => return Err(format!("its state is {other}: only jobs that wait are taken")),
    }
    // A queue there is a kind here.
    let mut job = Foreign::new(id(row, "id"), name, field(row, &["data"]).unwrap_or(&json!({})))?;
    job.queue(name)?;
    job.due(moment(row, &["start_after", "startafter"])?);
    job.draft.priority = match whole(row, &["priority"]) {
        Some(..0) => Priority::Low,
        None | Some(0) => Priority::Normal,
        Some(1..) => Priority::High,
    };
    job.retries_left(count(row, &["retry_limit", "retrylimit"]), count(row, &["retry_count", "retrycount"]));
    let delay = count(row, &["retry_delay", "retrydelay"]).min(86_400);
    let grows = field(row, &["retry_backoff", "retrybackoff"]).and_then(Value::as_bool) == Some(true);
    if grows {
        job.delays(&format!("exponential:base={}s,jitter=equal,cap=none", delay.max(1)))?;
    } else {
        job.delays(&format!("fixed:base={delay}s,jitter=none,cap=none"))?;
    }
    if field(row, &["singleton_key", "singletonkey"]).is_some() {
        job.notes.push("a singletonKey is not kept: set an idempotency key when you enqueue".into());
    }
    if field(row, &["dead_letter", "deadletter"]).is_some() {
        job.notes.push("a deadLetter queue is not kept: failed jobs are listed by `windlass dead list`".into());
    }
    Ok(job)
}
