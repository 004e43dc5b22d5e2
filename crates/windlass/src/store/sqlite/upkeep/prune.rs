//! Prune: removes what is past its retention and folds old tallies. The work per call is bounded.

use crate::job::QueueId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::gates;
use crate::store::sqlite::reads::columns::past;
use crate::store::sqlite::reads::rows;
use crate::store::{Keep, StoreError, WORKERS_FOR};
use crate::tally::{DELTAS_FOR, HOUR, MINUTE, MINUTES_FOR, fold_before, start_of};
use rusqlite::params;
use std::collections::HashMap;
use windlass_core::{State, Timestamp};

/// The most archived jobs removed per call: about ten milliseconds of writing.
const JOBS: usize = 2_000;
/// The most archived jobs looked at per call, for each state.
const LOOKS: usize = 20_000;
/// The states of archived jobs.
const ENDS: [State; 3] = [State::Succeeded, State::Cancelled, State::Failed];
/// The most idempotency keys looked at per call.
const KEYS: i64 = 2_000;
/// The most tally deltas folded per call.
const DELTAS: i64 = 20_000;
/// The most hours of minutes folded per call.
const HOURS: usize = 24;

/// How far pruning has come. Each call continues there, and begins again after the end.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store::sqlite) struct Progress {
    /// The last key that was looked at.
    key: i64,
    /// The last replayed job that was looked at.
    replayed: i64,
    /// The last archived job of each state.
    past: [Past; ENDS.len()],
}

/// A place in the index of archived jobs by age.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    finished_at: i64,
    queue: i64,
    id: i64,
}

pub(in crate::store::sqlite) fn prune(tx: &mut Tx<'_>, progress: &mut Progress) -> Result<u64, StoreError> {
    let gone = prune_archive(tx, &mut progress.past)?;
    prune_keys(tx, &mut progress.key)?;
    tx.conn.prepare_cached(sql!("upkeep.sql", "prune_workers"))?.execute([(tx.now - WORKERS_FOR).as_millis()])?;
    gates::prune(tx)?;
    gates::prune_replayed(tx, &mut progress.replayed)?;
    fold_minutes(tx)?;
    fold_hours(tx)?;
    Ok(gone)
}

fn prune_archive(tx: &mut Tx<'_>, places: &mut [Past; ENDS.len()]) -> Result<u64, StoreError> {
    let mut gone = 0;
    for (state, place) in ENDS.into_iter().zip(places) {
        gone += prune_state(tx, state, place, JOBS - gone)?;
        if gone == JOBS {
            break;
        }
    }
    Ok(gone as u64)
}

/// Up to when a job of each queue must have finished to be removed; queues that keep theirs are left out.
fn bounds(tx: &mut Tx<'_>, state: State) -> Result<HashMap<i64, i64>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("queues.sql", "queues"))?;
    let queues: Vec<i64> = rows::column(select.query([])?)?;
    let mut bounds = HashMap::new();
    for queue in queues {
        let retention = tx.retentions.of(tx.conn, tx.names, QueueId(queue))?;
        let bound = match retention.of(state) {
            Keep::Drop => Timestamp::MAX,
            Keep::Forever => continue,
            Keep::For(span) if tx.now.since(Timestamp::EPOCH) < span => continue,
            Keep::For(span) => tx.now - span,
        };
        bounds.insert(queue, bound.as_millis());
    }
    Ok(bounds)
}

/// Walks on from a place and removes what is past its queue's retention. Queues may keep jobs for different times, so
/// the walk also passes jobs that stay.
fn prune_state(tx: &mut Tx<'_>, state: State, place: &mut Past, most: usize) -> Result<usize, StoreError> {
    let bounds = bounds(tx, state)?;
    let Some(latest) = bounds.values().max() else { return Ok(0) };
    let mut select = tx.conn.prepare_cached(sql!("upkeep.sql", "prune_archive"))?;
    let from = params![state.as_str(), latest, place.finished_at, place.queue, place.id, LOOKS as i64];
    let found = rows::all(select.query(from)?, |row| {
        Ok(Past { finished_at: row.get(past::finished_at)?, queue: row.get(past::queue_id)?, id: row.get(past::id)? })
    })?;
    let mut outcome = tx.conn.prepare_cached(sql!("upkeep.sql", "outcome_delete"))?;
    let mut job = tx.conn.prepare_cached(sql!("commit.sql", "job_delete"))?;
    let mut attempts = tx.conn.prepare_cached(sql!("attempts.sql", "attempts_delete"))?;
    let mut gone = 0;
    for past in &found {
        if gone == most {
            return Ok(gone);
        }
        if bounds.get(&past.queue).is_some_and(|bound| past.finished_at <= *bound) {
            outcome.execute([past.id])?;
            job.execute([past.id])?;
            attempts.execute([past.id])?;
            gone += 1;
        }
        *place = *past;
    }
    if found.len() < LOOKS {
        *place = Past::default();
    }
    Ok(gone)
}

/// Removes keys whose window has passed and, one range at a time, keys whose job is no longer live.
fn prune_keys(tx: &Tx<'_>, after: &mut i64) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("upkeep.sql", "prune_keys"))?.execute([tx.now.as_millis(), KEYS])?;
    let mut next = tx.conn.prepare_cached(sql!("upkeep.sql", "keys_next"))?;
    let last: Option<i64> = next.query_row([*after, KEYS], rows::only)?;
    tx.conn.prepare_cached(sql!("upkeep.sql", "prune_live_keys"))?.execute([*after, KEYS])?;
    *after = last.unwrap_or(0);
    Ok(())
}

fn fold_minutes(tx: &Tx<'_>) -> Result<(), StoreError> {
    let before = fold_before(tx.now, DELTAS_FOR, MINUTE).as_millis();
    let mut bound = tx.conn.prepare_cached(sql!("tallies.sql", "tally_fold_bound"))?;
    let bound: Option<i64> = bound.query_row([before, DELTAS], rows::only)?;
    if let Some(bound) = bound {
        tx.conn.prepare_cached(sql!("tallies.sql", "tally_fold_minutes"))?.execute([before, bound])?;
        tx.conn.prepare_cached(sql!("tallies.sql", "tally_folded_minutes"))?.execute([before, bound])?;
    }
    Ok(())
}

fn fold_hours(tx: &Tx<'_>) -> Result<(), StoreError> {
    let before = fold_before(tx.now, MINUTES_FOR, HOUR).as_millis();
    for _ in 0..HOURS {
        let mut oldest = tx.conn.prepare_cached(sql!("tallies.sql", "tally_oldest_minute"))?;
        let Some(oldest) = oldest.query_row([before], rows::only::<Option<i64>>)? else { break };
        let hour = start_of(Timestamp::from_millis(oldest), HOUR).as_millis();
        tx.conn.prepare_cached(sql!("tallies.sql", "tally_fold_hours"))?.execute([hour])?;
        tx.conn.prepare_cached(sql!("tallies.sql", "tally_folded_hours"))?.execute([hour])?;
    }
    Ok(())
}
