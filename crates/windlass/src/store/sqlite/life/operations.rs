//! What people do: cancel, replay, discard, amend.

use crate::job::{Job, QueueId};
use crate::store::replay::ACTION;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::expire;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::reads::columns::standing;
use crate::store::sqlite::reads::rows;
use crate::store::{
    Amend, Amended, Audit, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope, StoreError,
};
use crate::tally::Tally;
use rusqlite::{OptionalExtension, params};
use windlass_core::job::Kind;
use windlass_core::{JobId, Next, Priority, State, Timestamp};

/// Where a job stands.
struct Place {
    queue: QueueId,
    state: State,
    kind: Kind,
    is_dead_letter: bool,
}

/// A job's place, live or archived, if the scope covers it.
fn place(tx: &mut Tx<'_>, scope: &Scope, id: JobId) -> Result<Option<Place>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("operations.sql", "standing"))?;
    let found = rows::all(select.query([id.0])?, |row| {
        Ok(Place {
            queue: QueueId(row.get(standing::queue_id)?),
            state: rows::word(row, standing::state, State::parse)?,
            kind: tx.names.kind(rows::must(row, standing::kind)?)?,
            is_dead_letter: row.get(standing::is_dead_letter)?,
        })
    })?;
    let Some(place) = found.into_iter().next() else { return Ok(None) };
    let covers = scope.covers(&tx.names.queue(tx.conn, place.queue)?.0);
    Ok(covers.then_some(place))
}

pub(in crate::store::sqlite) fn live_job(tx: &mut Tx<'_>, id: JobId) -> Result<Option<Job>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("jobs.sql", "job_live"))?;
    let found = rows::all(select.query([id.0])?, |row| rows::live(row, tx.conn, tx.names))?;
    Ok(found.into_iter().next())
}

pub(in crate::store::sqlite) fn cancel(
    tx: &mut Tx<'_>,
    scope: &Scope,
    ids: &[JobId],
) -> Result<Vec<Cancelled>, StoreError> {
    let batch = finish::batch(tx)?;
    ids.iter().map(|id| cancel_one(tx, scope, *id, &batch)).collect()
}

fn cancel_one(tx: &mut Tx<'_>, scope: &Scope, id: JobId, batch: &Batch<'_>) -> Result<Cancelled, StoreError> {
    let Some(place) = place(tx, scope, id)? else { return Ok(Cancelled::NotFound) };
    match place.state {
        State::Queued | State::Retrying => {
            if let Some(job) = live_job(tx, id)? {
                expire::end_waiting(tx, job, Next::Cancelled, batch)?;
            }
            Ok(Cancelled::Now)
        }
        State::Running => {
            tx.conn.prepare_cached(sql!("operations.sql", "request_cancel"))?.execute([id.0])?;
            Ok(Cancelled::Requested)
        }
        State::Succeeded | State::Failed | State::Cancelled => Ok(Cancelled::Finished(place.state)),
    }
}

pub(in crate::store::sqlite) fn replay(
    tx: &mut Tx<'_>,
    scope: &Scope,
    replay: &Replay,
) -> Result<Vec<Replayed>, StoreError> {
    let mut count = 0;
    let mut replayed = Vec::with_capacity(replay.ids.len());
    for id in &replay.ids {
        let result = replay_one(tx, scope, *id, replay.only, replay.due_at(count, tx.now))?;
        count += u64::from(result == Replayed::Queued);
        replayed.push(result);
    }
    tx.rings = true;
    note(tx, &replay.by, ACTION, count, &replay.detail(count, tx.now))?;
    Ok(replayed)
}

fn replay_one(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: JobId,
    only: ReplayOnly,
    due_at: Timestamp,
) -> Result<Replayed, StoreError> {
    let Some(place) = place(tx, scope, id)? else { return Ok(Replayed::NotFound) };
    match place.state {
        State::Running => return Ok(Replayed::Running),
        State::Queued | State::Retrying => {
            if only == ReplayOnly::Any {
                let now = tx.now.as_millis();
                moving(tx, id, |tx| {
                    Ok(tx.conn.prepare_cached(sql!("operations.sql", "run_now"))?.execute([id.0, now])?)
                })?;
            }
            return Ok(Replayed::AlreadyLive);
        }
        State::Succeeded | State::Failed | State::Cancelled => {}
    }
    if only == ReplayOnly::DeadLetters && !place.is_dead_letter {
        return Ok(Replayed::NotDead);
    }
    let mut restore = tx.conn.prepare_cached(sql!("operations.sql", "replay"))?;
    restore.execute([id.0, due_at.as_millis(), tx.now.as_millis()])?;
    tx.conn.prepare_cached(sql!("operations.sql", "waiting_enter"))?.execute([id.0])?;
    tx.conn.prepare_cached(sql!("attempts.sql", "attempts_restore"))?.execute([id.0])?;
    tx.conn.prepare_cached(sql!("upkeep.sql", "archive_delete"))?.execute([id.0])?;
    tx.count(place.queue, &place.kind, Tally { replayed: 1, ..Tally::default() });
    Ok(Replayed::Queued)
}

pub(in crate::store::sqlite) fn discard(
    tx: &mut Tx<'_>,
    scope: &Scope,
    discard: &Discard,
) -> Result<Vec<Discarded>, StoreError> {
    let mut count = 0;
    let mut discarded = Vec::with_capacity(discard.ids.len());
    for id in &discard.ids {
        let result = match place(tx, scope, *id)?.map(|place| place.state) {
            None => Discarded::NotFound,
            Some(State::Failed) => Discarded::Done,
            Some(State::Queued | State::Running | State::Retrying | State::Succeeded | State::Cancelled) => {
                Discarded::NotDead
            }
        };
        if result == Discarded::Done {
            let mut update = tx.conn.prepare_cached(sql!("operations.sql", "discard"))?;
            count += update.execute(params![id.0, tx.now.as_millis(), discard.reason])? as u64;
        }
        discarded.push(result);
    }
    note(tx, &discard.by, "discard", count, &discard.reason)?;
    Ok(discarded)
}

pub(in crate::store::sqlite) fn amend(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: JobId,
    change: Amend,
) -> Result<Amended, StoreError> {
    let Some(place) = place(tx, scope, id)? else { return Ok(Amended::NotFound) };
    match place.state {
        State::Queued | State::Retrying => {}
        State::Running | State::Succeeded | State::Failed | State::Cancelled => {
            return Ok(Amended::NotWaiting(place.state));
        }
    }
    let (priority, run_at) = (change.priority.map(Priority::rank), change.run_at.map(Timestamp::as_millis));
    moving(tx, id, |tx| {
        Ok(tx.conn.prepare_cached(sql!("operations.sql", "amend"))?.execute(params![id.0, priority, run_at])?)
    })?;
    tx.rings = true;
    Ok(Amended::Done)
}

/// Changes when or in which lane a job waits.
fn moving(tx: &Tx<'_>, id: JobId, change: impl FnOnce(&Tx<'_>) -> Result<usize, StoreError>) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("operations.sql", "waiting_leave"))?.execute([id.0])?;
    change(tx)?;
    tx.conn.prepare_cached(sql!("operations.sql", "waiting_enter"))?.execute([id.0])?;
    Ok(())
}

/// An audit line, unless nothing was done.
fn note(tx: &Tx<'_>, by: &str, action: &str, count: u64, detail: &str) -> Result<(), StoreError> {
    if count == 0 {
        return Ok(());
    }
    audit(tx, &Audit { at: tx.now, by: by.into(), action: action.into(), count, detail: detail.into() })
}

pub(in crate::store::sqlite) fn audit(tx: &Tx<'_>, entry: &Audit) -> Result<(), StoreError> {
    let mut insert = tx.conn.prepare_cached(sql!("registry.sql", "audit"))?;
    let count = i64::try_from(entry.count).unwrap_or(i64::MAX);
    insert.execute(params![entry.at.as_millis(), entry.by, entry.action, count, entry.detail])?;
    Ok(())
}

pub(in crate::store::sqlite) fn queue_row(tx: &Tx<'_>, id: QueueId) -> Result<crate::store::Queue, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("queues.sql", "queue"))?;
    let found = rows::all(select.query([id.0])?, rows::queue)?;
    found.into_iter().next().ok_or_else(|| StoreError::corrupt(format!("queue {}", id.0), "it was just there"))
}

pub(in crate::store::sqlite) fn is_live(tx: &Tx<'_>, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.conn.prepare_cached(sql!("jobs.sql", "is_live"))?.query_row([job.0], |_| Ok(())).optional()?.is_some())
}
