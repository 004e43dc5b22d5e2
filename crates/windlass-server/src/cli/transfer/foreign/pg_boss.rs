//! pg-boss: rows of the table `pgboss.job`, of versions with and without underscores in the names of columns.

use super::read::{count, field, id, moment, text, whole};
use super::{Dumped, Foreign};
use serde_json::Value;
use windlass_core::Priority;

/// Queues that pg-boss uses itself.
const OWN: &str = "__pgboss__";
/// The policy of a queue without rules about jobs that wait or run together.
const NO_RULES: &str = "standard";

pub(super) fn read(dumped: &Dumped) -> Result<Foreign, String> {
    let row = &dumped.value;
    let name = text(row, &["name"]).ok_or("`name`, the queue, is missing")?;
    if name.starts_with(OWN) {
        return Err(format!("`{name}` is a queue of pg-boss itself"));
    }
    // A retry is counted when it starts, so the row does not count the one that waits.
    let begun = match text(row, &["state"]).ok_or("`state` is missing")? {
        "created" => 0,
        "retry" => 1,
        "active" => return Err("it runs there: stop its workers first, so that it waits again".into()),
        other => return Err(format!("its state is {other}: only jobs that wait are taken")),
    };
    if field(row, &["blocked"]).and_then(Value::as_bool) == Some(true) {
        return Err("it waits for other jobs of a flow, and flows are not kept".into());
    }
    // A queue there is a kind here.
    let mut job = Foreign::new(id(row, "id"), name, dumped.payload.as_deref().unwrap_or("{}"))?;
    job.queue(name)?;
    job.due(moment(row, &["start_after", "startafter"])?);
    job.draft.priority = match whole(row, &["priority"]) {
        Some(..0) => Priority::Low,
        None | Some(0) => Priority::Normal,
        Some(1..) => Priority::High,
    };
    delays(&mut job, row)?;
    job.retries_left(count(row, &["retry_limit", "retrylimit"]), count(row, &["retry_count", "retrycount"]) + begun);
    notes(&mut job, row);
    Ok(job)
}

/// Growing delays begin between once and twice `retryDelay`, and double.
fn delays(job: &mut Foreign, row: &Value) -> Result<(), String> {
    let delay = count(row, &["retry_delay", "retrydelay"]).min(86_400);
    if field(row, &["retry_backoff", "retrybackoff"]).and_then(Value::as_bool) != Some(true) {
        return job.delays(&format!("fixed:base={delay}s,jitter=none,cap=none"));
    }
    let cap = match count(row, &["retry_delay_max"]) {
        0 => "none".to_owned(),
        seconds => format!("{}s", seconds.min(86_400)),
    };
    job.delays(&format!("exponential:base={}s,jitter=equal,cap={cap}", delay.max(1) * 2))
}

fn notes(job: &mut Foreign, row: &Value) {
    if field(row, &["singleton_key", "singletonkey"]).is_some() {
        job.notes.push("a singletonKey is not kept: set an idempotency key when you enqueue".into());
    }
    if field(row, &["singleton_on", "singletonon"]).is_some() {
        job.notes.push("singletonSeconds is not kept: set an idempotency key with a window when you enqueue".into());
    }
    if let Some(policy) = text(row, &["policy"]).filter(|policy| *policy != NO_RULES) {
        job.notes.push(format!("the queue's policy `{policy}` is not kept: `windlass queues set` has limits"));
    }
    if field(row, &["group_id"]).is_some() {
        job.notes.push("a group is not kept: set a limitKey when you enqueue".into());
    }
    if field(row, &["dead_letter", "deadletter"]).is_some() {
        job.notes.push("a deadLetter queue is not kept: failed jobs are listed by `windlass dead list`".into());
    }
}
