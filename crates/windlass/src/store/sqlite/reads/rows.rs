//! Reads rows into jobs, attempts and queues.

use crate::job::{ClaimedJob, Job, LeaseId, QueueId};
use crate::store::sqlite::reads::columns::{attempt, finished, held, job, queue};
use crate::store::sqlite::reads::names::Names;
use crate::store::{Queue, StoreError, json};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};
use std::sync::Arc;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Attempt, Delivery, Executor, JobId, Millis, Priority, Reason, State, Status, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// A row of a running job; none if it runs under another lease.
pub(in crate::store::sqlite) fn claimed(
    row: &Row<'_>,
    lease: LeaseId,
    conn: &Connection,
    names: &mut Names,
) -> Result<Option<ClaimedJob>> {
    let is_held = row.get::<_, i64>(held::lease_id)? == lease.0;
    is_held.then(|| Ok(ClaimedJob { job: live(row, conn, names)?, lease, is_probe: false })).transpose()
}

/// A row of an archived job.
pub(in crate::store::sqlite) fn archived(row: &Row<'_>, conn: &Connection, names: &mut Names) -> Result<Job> {
    let mut job = live(row, conn, names)?;
    job.finished_at = moment(row, finished::finished_at)?;
    let is_failed = maybe(row, finished::reason)?.is_some();
    job.reason = is_failed.then(|| word(row, finished::reason, Reason::parse)).transpose()?;
    job.discarded_at = moment(row, finished::discarded_at)?;
    job.discard_reason = row.get(finished::discard_reason)?;
    job.result = text(row, finished::result)?;
    Ok(job)
}

/// A row of a live job.
pub(in crate::store::sqlite) fn live(row: &Row<'_>, conn: &Connection, names: &mut Names) -> Result<Job> {
    let id = JobId(row.get(job::id)?);
    let queue_id = QueueId(row.get(job::queue_id)?);
    let queue = names.queue(conn, queue_id)?;
    let http = maybe(row, job::http)?.map(json::call_from_text).transpose()?.map(Arc::new);
    let webhook = maybe(row, job::webhook)?.map(json::webhook_from_text).transpose()?.map(Arc::new);
    Ok(Job {
        id,
        tenant: queue.0.clone(),
        queue: queue.1.clone(),
        queue_id,
        executor: queue.2,
        kind: names.kind(must(row, job::kind)?)?,
        payload: must(row, job::payload)?.into(),
        priority: priority(row.get(job::priority)?, id)?,
        state: word(row, job::state, State::parse)?,
        reason: None,
        delivery: if row.get(job::at_most_once)? { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        policy: names.policy(conn, row.get(job::policy_id)?)?,
        attempt: row.get(job::attempt)?,
        failures: row.get(job::failures)?,
        crashes: row.get(job::crashes)?,
        replays: row.get(job::replays)?,
        created_at: Timestamp::from_millis(row.get(job::created_at)?),
        due_at: Timestamp::from_millis(row.get(job::due_at)?),
        first_attempt_at: moment(row, job::first_attempt_at)?,
        claimed_at: moment(row, job::claimed_at)?,
        finished_at: None,
        previous_delay: span(row, job::previous_delay)?.unwrap_or_default(),
        start_by: moment(row, job::start_by)?,
        timeout: span(row, job::timeout_ms)?,
        idempotency_key: text(row, job::idempotency_key)?,
        cancel_requested: row.get(job::cancel_requested)?,
        error_class: row.get(job::error_class)?,
        error: row.get(job::error)?,
        result: None,
        discarded_at: None,
        discard_reason: None,
        http,
        webhook,
        schedule: row.get::<_, Option<i64>>(job::schedule_id)?.map(JobId),
        parent: row.get::<_, Option<i64>>(job::parent_id)?.map(JobId),
        traceparent: text(row, job::traceparent)?,
        limit_key: text(row, job::limit_key)?,
    })
}

pub(in crate::store::sqlite) fn priority(rank: i64, job: JobId) -> Result<Priority> {
    Priority::from_rank(rank).ok_or_else(|| StoreError::corrupt(format!("job {job}"), "a priority is -2 to 2"))
}

/// A row of an attempt.
pub(in crate::store::sqlite) fn attempt(row: &Row<'_>) -> Result<Attempt> {
    Ok(Attempt {
        number: row.get(attempt::number)?,
        retry: row.get(attempt::retry)?,
        status: word(row, attempt::status, Status::parse)?,
        started_at: Timestamp::from_millis(row.get(attempt::started_at)?),
        finished_at: Timestamp::from_millis(row.get(attempt::finished_at)?),
        error_class: row.get(attempt::error_class)?,
        error: row.get(attempt::error)?,
        note: row.get(attempt::note)?,
        worker: row.get(attempt::worker)?,
        next_run_at: moment(row, attempt::next_run_at)?,
        delay: span(row, attempt::delay_ms)?,
        why: row.get(attempt::why)?,
        trace: row.get(attempt::trace)?,
        replay: row.get(attempt::replay)?,
    })
}

/// A row of a queue.
pub(in crate::store::sqlite) fn queue(row: &Row<'_>) -> Result<Queue> {
    let bad = |error: windlass_core::NameError| StoreError::corrupt("a queue", error.to_string());
    Ok(Queue {
        id: QueueId(row.get(queue::id)?),
        tenant: Tenant::new(must(row, queue::tenant)?).map_err(bad)?,
        name: QueueName::new(must(row, queue::name)?).map_err(bad)?,
        executor: word(row, queue::executor, Executor::parse)?,
        paused: row.get(queue::paused)?,
        created_at: Timestamp::from_millis(row.get(queue::created_at)?),
    })
}

pub(in crate::store::sqlite) fn word<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text = must(row, column)?;
    parse(text).ok_or_else(|| StoreError::corrupt(format!("the word `{text}`"), "columns hold words Windlass knows"))
}

pub(in crate::store::sqlite) fn moment(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

fn span(row: &Row<'_>, column: usize) -> Result<Option<Millis>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|ms| Millis::new(ms.max(0) as u64)))
}

fn text(row: &Row<'_>, column: usize) -> Result<Option<Arc<str>>> {
    Ok(maybe(row, column)?.map(Into::into))
}

pub(in crate::store::sqlite) fn must<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str> {
    maybe(row, column)?.ok_or_else(|| StoreError::corrupt(format!("column {column}"), "it is never empty"))
}

pub(in crate::store::sqlite) fn maybe<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>> {
    row.get_ref(column)?.as_str_or_null().map_err(|error| StoreError::corrupt("a text column", error.to_string()))
}

/// All rows of a query, each read by `read`.
pub(in crate::store::sqlite) fn all<T>(
    mut rows: rusqlite::Rows<'_>,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The only column of a row.
pub(in crate::store::sqlite) fn only<T: FromSql>(row: &Row<'_>) -> rusqlite::Result<T> {
    row.get(0)
}

/// The only column of all rows of a query.
pub(in crate::store::sqlite) fn column<T: FromSql>(rows: rusqlite::Rows<'_>) -> Result<Vec<T>> {
    all(rows, |row| Ok(only(row)?))
}
