//! What operators do: cancel, replay, discard, amend. Core says what each does to a job; this applies it.

use crate::job::QueueId;
use crate::store::replay::{ACTION, Paced, respaced};
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::expire;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::life::gates;
use crate::store::sqlite::reads::columns::{paced, standing};
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::reads::settings::audit;
use crate::store::{
    Amend, Amended, Audit, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope, Spacing, StoreError,
};
use crate::tally::Tally;
use rusqlite::{OptionalExtension, params};
use windlass_core::job::Kind;
use windlass_core::verdict::{self, Allowance, AmendVerdict, CancelVerdict, DiscardVerdict, ReplayVerdict, Standing};
use windlass_core::{JobId, Next, State, Timestamp};

/// The columns of a live or archived job that operations need.
struct Found {
    queue: QueueId,
    kind: Kind,
    standing: Standing,
}

/// The job, if it exists and the scope covers it.
fn find(tx: &mut Tx<'_>, scope: &Scope, id: JobId) -> Result<Option<Found>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("operations.sql", "standing"))?;
    let found = rows::all(select.query([id.0])?, |row| {
        Ok(Found {
            queue: QueueId(row.get(standing::queue_id)?),
            kind: tx.names.kind(rows::must(row, standing::kind)?)?,
            standing: Standing {
                state: rows::word(row, standing::state, State::parse)?,
                is_discarded: row.get(standing::is_discarded)?,
                priority: rows::priority(row.get(standing::priority)?, id)?,
                due_at: Timestamp::from_millis(row.get(standing::due_at)?),
                start_by: rows::moment(row, standing::start_by)?,
                has_started: row.get(standing::has_started)?,
            },
        })
    })?;
    let Some(found) = found.into_iter().next() else { return Ok(None) };
    let covers = scope.covers(&tx.names.queue(tx.conn, found.queue)?.0);
    Ok(covers.then_some(found))
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
    let Some(found) = find(tx, scope, id)? else { return Ok(Cancelled::NotFound) };
    match verdict::cancel(found.standing.state) {
        CancelVerdict::EndNow => {
            let mut select = tx.conn.prepare_cached(sql!("jobs.sql", "job_live"))?;
            let jobs = rows::all(select.query([id.0])?, |row| rows::live(row, tx.conn, tx.names))?;
            for job in jobs {
                expire::end_waiting(tx, job, Next::Cancelled, batch)?;
            }
            Ok(Cancelled::Now)
        }
        CancelVerdict::AskToStop => {
            tx.conn.prepare_cached(sql!("operations.sql", "request_cancel"))?.execute([id.0])?;
            Ok(Cancelled::Requested)
        }
        CancelVerdict::Finished(state) => Ok(Cancelled::Finished(state)),
    }
}

pub(in crate::store::sqlite) fn replay(
    tx: &mut Tx<'_>,
    scope: &Scope,
    replay: &Replay,
) -> Result<Vec<Replayed>, StoreError> {
    let mut count = 0;
    let gate = replay.gate_key();
    let mut replayed = Vec::with_capacity(replay.ids.len());
    for id in &replay.ids {
        let result = replay_one(tx, scope, *id, replay.only, replay.due_at(count, tx.now))?;
        count += u64::from(result == Replayed::Queued);
        if result == Replayed::Queued {
            gates::replayed(tx, *id, gate.as_deref())?;
        }
        if result == Replayed::Queued && replay.spacing != Spacing::NONE {
            tx.conn.prepare_cached(sql!("operations.sql", "queue_pace"))?.execute([id.0])?;
        }
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
    let Some(found) = find(tx, scope, id)? else { return Ok(Replayed::NotFound) };
    match verdict::replay(&found.standing, only, due_at, tx.now) {
        ReplayVerdict::Running => Ok(Replayed::Running),
        ReplayVerdict::NotDead => Ok(Replayed::NotDead),
        ReplayVerdict::LeaveWaiting => Ok(Replayed::AlreadyLive),
        ReplayVerdict::RunNow(due_at) => {
            moving(tx, id, |tx| {
                let mut update = tx.conn.prepare_cached(sql!("operations.sql", "run_now"))?;
                Ok(update.execute([id.0, due_at.as_millis()])?)
            })?;
            Ok(Replayed::AlreadyLive)
        }
        ReplayVerdict::Requeue(allowance) => {
            requeue(tx, id, &allowance)?;
            tx.count(found.queue, &found.kind, Tally { replayed: 1, ..Tally::default() });
            Ok(Replayed::Queued)
        }
    }
}

/// Puts an archived job back into its queue.
fn requeue(tx: &mut Tx<'_>, id: JobId, allowance: &Allowance) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("operations.sql", "replay"))?.execute(params![
        id.0,
        allowance.due_at.as_millis(),
        allowance.failures,
        allowance.crashes,
        millis(allowance.previous_delay),
        allowance.start_by.map(Timestamp::as_millis),
    ])?;
    enter(tx, id)?;
    tx.conn.prepare_cached(sql!("attempts.sql", "attempts_restore"))?.execute([id.0])?;
    tx.conn.prepare_cached(sql!("upkeep.sql", "outcome_delete"))?.execute([id.0])?;
    Ok(())
}

pub(in crate::store::sqlite) fn discard(
    tx: &mut Tx<'_>,
    scope: &Scope,
    discard: &Discard,
) -> Result<Vec<Discarded>, StoreError> {
    let mut count = 0;
    let mut discarded = Vec::with_capacity(discard.ids.len());
    for id in &discard.ids {
        let standing = find(tx, scope, *id)?.map(|found| found.standing);
        let result = match standing.map(|job| verdict::discard(job.state, job.is_discarded)) {
            None => Discarded::NotFound,
            Some(DiscardVerdict::NotDead) => Discarded::NotDead,
            Some(DiscardVerdict::AlreadyDiscarded) => Discarded::Done,
            Some(DiscardVerdict::Discard) => {
                let mut update = tx.conn.prepare_cached(sql!("operations.sql", "discard"))?;
                count += update.execute(params![id.0, tx.now.as_millis(), discard.reason])? as u64;
                Discarded::Done
            }
        };
        discarded.push(result);
    }
    note(tx, &discard.by, "discard", count, &discard.detail())?;
    Ok(discarded)
}

pub(in crate::store::sqlite) fn amend(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: JobId,
    change: Amend,
) -> Result<Amended, StoreError> {
    let Some(found) = find(tx, scope, id)? else { return Ok(Amended::NotFound) };
    match verdict::amend(&found.standing, change) {
        AmendVerdict::NotWaiting(state) => Ok(Amended::NotWaiting(state)),
        AmendVerdict::Change { priority, due_at } => {
            tx.conn
                .prepare_cached(sql!("operations.sql", "amend_priority"))?
                .execute(params![id.0, priority.rank()])?;
            moving(tx, id, |tx| {
                let mut update = tx.conn.prepare_cached(sql!("operations.sql", "amend"))?;
                Ok(update.execute(params![id.0, priority.rank(), due_at.as_millis()])?)
            })?;
            tx.rings = true;
            Ok(Amended::Done)
        }
    }
}

/// Changes when or in which lane a job waits.
fn moving(
    tx: &mut Tx<'_>,
    id: JobId,
    change: impl FnOnce(&Tx<'_>) -> Result<usize, StoreError>,
) -> Result<(), StoreError> {
    leave(tx, id)?;
    change(tx)?;
    enter(tx, id)
}

/// A job waits as its row says.
fn enter(tx: &mut Tx<'_>, id: JobId) -> Result<(), StoreError> {
    let lane = tx.conn.prepare_cached(sql!("operations.sql", "waiting_enter"))?.query_row([id.0], rows::only)?;
    tx.waiting(lane, 1);
    Ok(())
}

/// A job that waits as its row says stops waiting.
pub(in crate::store::sqlite) fn leave(tx: &mut Tx<'_>, id: JobId) -> Result<(), StoreError> {
    let mut delete = tx.conn.prepare_cached(sql!("operations.sql", "waiting_leave"))?;
    let left: Option<i64> = delete.query_row([id.0], rows::only).optional()?;
    match left {
        Some(lane) => tx.waiting(lane, -1),
        None => gates::unpark(tx, id)?,
    }
    Ok(())
}

/// Pauses or resumes every queue of a name. Replays that waited in it stay as far apart as they were.
pub(in crate::store::sqlite) fn pause_queue(
    tx: &mut Tx<'_>,
    tenant: &str,
    name: &str,
    paused: bool,
) -> Result<u64, StoreError> {
    if !paused {
        let mut select = tx.conn.prepare_cached(sql!("operations.sql", "queue_paced"))?;
        let waiting = rows::all(select.query(params![tenant, name])?, |row| {
            Ok(Paced {
                queue: QueueId(row.get(paced::queue_id)?),
                id: JobId(row.get(paced::id)?),
                due_at: Timestamp::from_millis(row.get(paced::due_at)?),
            })
        })?;
        for (id, due_at) in respaced(&waiting, tx.now) {
            moving(tx, id, |tx| {
                let mut update = tx.conn.prepare_cached(sql!("operations.sql", "run_now"))?;
                Ok(update.execute(params![id.0, due_at.as_millis()])?)
            })?;
        }
    }
    tx.rings = true;
    let now = tx.now.as_millis();
    Ok(tx.conn.prepare_cached(sql!("queues.sql", "queue_pause"))?.execute(params![tenant, name, paused, now])? as u64)
}

/// Adds an audit entry, unless nothing changed.
fn note(tx: &Tx<'_>, by: &str, action: &str, count: u64, detail: &str) -> Result<(), StoreError> {
    if count == 0 {
        return Ok(());
    }
    audit(tx, &Audit { at: tx.now, by: by.into(), action: action.into(), count, detail: detail.into() })
}
