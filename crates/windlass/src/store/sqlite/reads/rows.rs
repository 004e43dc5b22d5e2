//! Rows become jobs, attempts and queues. Columns are read by their place in the select files.

use crate::job::{ClaimedJob, Job, LeaseId, QueueId};
use crate::store::sqlite::life::names::Names;
use crate::store::{Queue, StoreError, json};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};
use std::sync::Arc;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Attempt, Delivery, Executor, JobId, Millis, Priority, Reason, State, Status, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// A row of `live_select`.
pub(in crate::store::sqlite) fn live(row: &Row<'_>, conn: &Connection, names: &mut Names) -> Result<Job> {
    shared(row, conn, names)
}

/// A row of `running_select`: nothing if the job runs under another lease, or not at all.
pub(in crate::store::sqlite) fn claimed(
    row: &Row<'_>,
    lease: LeaseId,
    conn: &Connection,
    names: &mut Names,
) -> Result<Option<ClaimedJob>> {
    let is_held = row.get::<_, Option<i64>>(28)? == Some(lease.0);
    is_held.then(|| Ok(ClaimedJob { job: shared(row, conn, names)?, lease })).transpose()
}

/// A row of `archive_select`.
pub(in crate::store::sqlite) fn archived(row: &Row<'_>, conn: &Connection, names: &mut Names) -> Result<Job> {
    let mut job = shared(row, conn, names)?;
    job.finished_at = moment(row, 28)?;
    let is_failed = maybe(row, 29)?.is_some();
    job.reason = is_failed.then(|| word(row, 29, Reason::parse)).transpose()?;
    job.discarded_at = moment(row, 30)?;
    job.discard_reason = row.get(31)?;
    job.result = text(row, 32)?;
    Ok(job)
}

fn shared(row: &Row<'_>, conn: &Connection, names: &mut Names) -> Result<Job> {
    let id = JobId(row.get(0)?);
    let queue_id = QueueId(row.get(1)?);
    let queue = names.queue(conn, queue_id)?;
    let http = maybe(row, 25)?.map(json::call_from_text).transpose()?.map(Arc::new);
    let webhook = maybe(row, 26)?.map(json::webhook_from_text).transpose()?.map(Arc::new);
    Ok(Job {
        id,
        tenant: queue.0.clone(),
        queue: queue.1.clone(),
        queue_id,
        executor: queue.2,
        kind: names.kind(must(row, 16)?)?,
        payload: must(row, 27)?.into(),
        priority: Priority::from_rank(row.get(2)?)
            .ok_or_else(|| StoreError::corrupt(format!("job {id}"), "a priority is -2 to 2"))?,
        state: word(row, 4, State::parse)?,
        reason: None,
        delivery: if row.get(3)? { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        policy: names.policy(conn, row.get(15)?)?,
        attempt: row.get(6)?,
        failures: row.get(9)?,
        crashes: row.get(10)?,
        replays: row.get(11)?,
        created_at: Timestamp::from_millis(row.get(14)?),
        due_at: Timestamp::from_millis(row.get(5)?),
        first_attempt_at: moment(row, 8)?,
        claimed_at: moment(row, 7)?,
        finished_at: None,
        previous_delay: span(row, 12)?.unwrap_or_default(),
        start_by: moment(row, 17)?,
        timeout: span(row, 18)?,
        idempotency_key: text(row, 19)?,
        cancel_requested: row.get(13)?,
        error_class: row.get(23)?,
        error: row.get(24)?,
        result: None,
        discarded_at: None,
        discard_reason: None,
        http,
        webhook,
        schedule: row.get::<_, Option<i64>>(20)?.map(JobId),
        parent: row.get::<_, Option<i64>>(21)?.map(JobId),
        traceparent: text(row, 22)?,
    })
}

/// The first twelve columns of the ledger's selects.
pub(in crate::store::sqlite) fn attempt(row: &Row<'_>) -> Result<Attempt> {
    Ok(Attempt {
        number: row.get(0)?,
        retry: row.get(1)?,
        status: word(row, 2, Status::parse)?,
        started_at: Timestamp::from_millis(row.get(3)?),
        finished_at: Timestamp::from_millis(row.get(4)?),
        error_class: row.get(5)?,
        error: row.get(6)?,
        note: row.get(7)?,
        worker: row.get(8)?,
        next_run_at: moment(row, 9)?,
        delay: span(row, 10)?,
        why: row.get(11)?,
    })
}

/// A row of `queue_select`.
pub(in crate::store::sqlite) fn queue(row: &Row<'_>) -> Result<Queue> {
    let bad = |error: windlass_core::NameError| StoreError::corrupt("a queue", error.to_string());
    Ok(Queue {
        id: QueueId(row.get(0)?),
        tenant: Tenant::new(must(row, 1)?).map_err(bad)?,
        name: QueueName::new(must(row, 2)?).map_err(bad)?,
        executor: word(row, 3, Executor::parse)?,
        paused: row.get(4)?,
        created_at: Timestamp::from_millis(row.get(5)?),
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

/// The first column of all rows of a query.
pub(in crate::store::sqlite) fn column<T: FromSql>(rows: rusqlite::Rows<'_>) -> Result<Vec<T>> {
    all(rows, |row| Ok(row.get(0)?))
}
