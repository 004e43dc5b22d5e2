//! Finish: a running job ends; its outcome is written and it is live no more. If its queue keeps no finished jobs, it
//! is deleted with its attempts.

use crate::fingerprint::Left;
use crate::job::QueueId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::commit::insert_attempt;
use crate::store::sqlite::life::{commit, schedule};
use crate::store::sqlite::reads::columns::{ended, ending, kept};
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Committed, Keep, StoreError};
use rusqlite::types::ToSqlOutput;
use rusqlite::{CachedStatement, Row, ToSql, params};
use std::collections::HashSet;
use windlass_core::job::Kind;
use windlass_core::{JobId, Reason};

/// Class and message of a failure.
type Reported<'a> = (Option<&'a str>, Option<&'a str>);

/// What a batch of outcomes needs, looked up once.
pub(in crate::store::sqlite) struct Batch<'t> {
    /// One-shot schedules that end with their run; almost always none.
    pub ending: HashSet<JobId>,
    pub attempt: CachedStatement<'t>,
    row: CachedStatement<'t>,
    archive: CachedStatement<'t>,
    delete: CachedStatement<'t>,
}

pub(in crate::store::sqlite) fn batch<'t>(tx: &Tx<'t>) -> Result<Batch<'t>, StoreError> {
    let conn = tx.conn;
    let mut select = conn.prepare_cached(sql!("schedules.sql", "one_shots_ending"))?;
    let ids: Vec<i64> = rows::column(select.query([])?)?;
    Ok(Batch {
        ending: ids.into_iter().map(JobId).collect(),
        attempt: conn.prepare_cached(sql!("attempts.sql", "attempt_add"))?,
        row: conn.prepare_cached(sql!("commit.sql", "finish_held"))?,
        archive: conn.prepare_cached(sql!("commit.sql", "finish"))?,
        delete: conn.prepare_cached(sql!("commit.sql", "live_delete"))?,
    })
}

/// Ends a running job, or returns why it cannot.
pub(in crate::store::sqlite) fn end(
    tx: &mut Tx<'_>,
    commit: &Commit,
    reason: Option<Reason>,
    batch: &mut Batch<'_>,
) -> Result<Option<Committed>, StoreError> {
    let retention = tx.retentions.of(tx.conn, tx.names, commit.queue)?;
    let is_kept = retention.of(commit.transition.next.state()) != Keep::Drop;
    let mut found = batch.row.query(params![commit.job.0, commit.attempt, commit.lease.0])?;
    let Some(row) = found.next()? else { return commit::not_held(tx, commit).map(Some) };
    if row.get(kept::cancel_requested)? && !commit.stands_despite_cancel() {
        return Ok(Some(Committed::CancelRequested));
    }
    let schedule = row.get::<_, Option<i64>>(kept::schedule_id)?.map(JobId);
    if is_kept {
        archive(tx, commit, reason, row, &mut batch.archive)?;
    }
    drop(found);
    batch.delete.execute([commit.job.0])?;
    if is_kept {
        insert_attempt(&mut batch.attempt, commit)?;
    } else {
        drop_job(tx, commit.job)?;
    }
    let Some(schedule) = schedule else { return Ok(None) };
    if batch.ending.contains(&schedule) {
        end_one_shot(tx, schedule)?;
    } else if is_kept && reason.is_some() && !commit.is_discarded() {
        // What an error rule discards is no dead letter.
        schedule::run_failed(tx, schedule, commit.job)?;
    }
    Ok(None)
}

fn archive(
    tx: &mut Tx<'_>,
    commit: &Commit,
    reason: Option<Reason>,
    row: &Row<'_>,
    insert: &mut CachedStatement<'_>,
) -> Result<(), StoreError> {
    let (class, error) = if commit.error_class.is_some() {
        (commit.error_class.as_deref(), commit.error.as_deref())
    } else {
        // This attempt left no error, so the job keeps its last one.
        (rows::maybe(row, ending::error_class)?, rows::maybe(row, ending::error)?)
    };
    let print = match reason {
        Some(_) => {
            let left = left((class, error), commit.trace.as_deref());
            Some(fingerprint(tx, commit.queue, &commit.kind, left)?)
        }
        None => None,
    };
    for column in 0..kept::COUNT {
        bind(insert, column, ToSqlOutput::Borrowed(row.get_ref(column)?))?;
    }
    let transition = &commit.transition;
    bind(insert, ended::error_class, class)?;
    bind(insert, ended::error, error)?;
    bind(insert, ended::state, transition.next.state().as_str())?;
    bind(insert, ended::failures, transition.failures)?;
    bind(insert, ended::crashes, transition.crashes)?;
    bind(insert, ended::finished_at, tx.now.as_millis())?;
    bind(insert, ended::reason, reason.map(Reason::as_str))?;
    bind(insert, ended::fingerprint, print)?;
    bind(insert, ended::result, commit.result.as_deref())?;
    insert.raw_execute()?;
    Ok(())
}

/// Parameters are numbered from one, columns from zero.
fn bind(insert: &mut CachedStatement<'_>, column: usize, value: impl ToSql) -> Result<(), StoreError> {
    Ok(insert.raw_bind_parameter(column + 1, value)?)
}

/// Deletes a job whose queue keeps no finished jobs, with its attempts.
pub(in crate::store::sqlite) fn drop_job(tx: &Tx<'_>, job: JobId) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("commit.sql", "job_delete"))?.execute([job.0])?;
    tx.conn.prepare_cached(sql!("attempts.sql", "attempts_delete"))?.execute([job.0])?;
    Ok(())
}

pub(in crate::store::sqlite) fn end_one_shot(tx: &Tx<'_>, schedule: JobId) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("schedules.sql", "schedule_remove"))?.execute([schedule.0])?;
    Ok(())
}

pub(in crate::store::sqlite) fn fingerprint(
    tx: &mut Tx<'_>,
    queue: QueueId,
    kind: &Kind,
    left: Left<'_>,
) -> Result<String, StoreError> {
    let queue = tx.names.queue(tx.conn, queue)?;
    Ok(crate::fingerprint::fingerprint(left, kind, &queue.1))
}

/// What the last failure of a job left.
pub(in crate::store::sqlite) fn left<'a>((class, error): Reported<'a>, trace: Option<&'a str>) -> Left<'a> {
    Left { class: class.unwrap_or_default(), message: error.unwrap_or_default(), trace }
}
