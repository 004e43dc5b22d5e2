//! Graphile Worker: rows of its table of jobs, joined with the names of their task and queue.

use super::read::{count, field, id, moment, text, whole};
use super::{Dumped, Foreign};
use windlass_core::Priority;

/// Attempts of a job that does not say.
const ATTEMPTS: u64 = 25;

pub(super) fn read(dumped: &Dumped) -> Result<Foreign, String> {
    let row = &dumped.value;
    let task = text(row, &["task_identifier"]).ok_or("`task_identifier` is missing: the dump needs the task's name")?;
    if field(row, &["locked_at"]).is_some() {
        return Err("it runs there: stop its workers first, so that it waits again".into());
    }
    let attempts = count(row, &["attempts"]);
    let allowed = match count(row, &["max_attempts"]) {
        0 => ATTEMPTS,
        allowed => allowed,
    };
    if attempts >= allowed {
        return Err("its attempts are used up: only jobs that wait are taken".into());
    }
    let mut job = Foreign::new(id(row, "id"), task, dumped.payload.as_deref().unwrap_or("{}"))?;
    if let Some(queue) = text(row, &["queue_name"]) {
        job.queue(queue)?;
        job.notes.push(format!("jobs of `{queue}` ran one after another: `windlass queues set … --concurrency 1`"));
    }
    job.due(moment(row, &["run_at"])?);
    // Smaller numbers run first there.
    job.draft.priority = match whole(row, &["priority"]) {
        Some(..0) => Priority::High,
        None | Some(0) => Priority::Normal,
        Some(1..) => Priority::Low,
    };
    job.delays("exponential:base=3s,factor=2.718,cap=6h7m,jitter=none")?;
    job.retries_left(allowed - 1, attempts);
    if field(row, &["key"]).is_some() {
        job.notes.push("a job_key is not kept: set an idempotency key when you enqueue".into());
    }
    if field(row, &["flags"]).is_some() {
        job.notes.push("flags are not kept: every worker of the queue may take the job".into());
    }
    Ok(job)
}
