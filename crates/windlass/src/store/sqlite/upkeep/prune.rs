//! Prune: removes what is past its retention and folds old tallies. The work per call is bounded.

use crate::job::QueueId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::rows;
use crate::store::{Keep, StoreError, WORKERS_FOR};
use crate::tally::{DELTAS_FOR, HOUR, MINUTE, MINUTES_FOR, fold_before, start_of};
use rusqlite::params;
use windlass_core::{State, Timestamp};

/// The most archived jobs removed per call: about ten milliseconds of writing.
const JOBS: usize = 2_000;
/// The most idempotency keys looked at per call.
const KEYS: i64 = 2_000;
/// The most tally deltas folded per call.
const DELTAS: i64 = 20_000;
/// The most hours of minutes folded per call.
const HOURS: usize = 24;

pub(in crate::store::sqlite) fn prune(tx: &mut Tx<'_>, keys_after: &mut i64) -> Result<u64, StoreError> {
    let gone = prune_archive(tx)?;
    prune_keys(tx, keys_after)?;
    tx.conn.prepare_cached(sql!("upkeep.sql", "prune_workers"))?.execute([(tx.now - WORKERS_FOR).as_millis()])?;
    fold_minutes(tx)?;
    fold_hours(tx)?;
    Ok(gone)
}

fn prune_archive(tx: &mut Tx<'_>) -> Result<u64, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("queues.sql", "queues"))?;
    let queues: Vec<i64> = rows::column(select.query([])?)?;
    let mut gone = 0;
    for queue in queues.into_iter().map(QueueId) {
        let retention = tx.retentions.of(tx.conn, tx.names, queue)?;
        for state in [State::Succeeded, State::Cancelled, State::Failed] {
            let before = match retention.of(state) {
                Keep::Drop => Timestamp::MAX,
                Keep::Forever => continue,
                Keep::For(span) if tx.now.since(Timestamp::EPOCH) < span => continue,
                Keep::For(span) => tx.now - span,
            };
            gone += prune_queue(tx, queue, state, before, JOBS - gone)?;
            if gone == JOBS {
                return Ok(gone as u64);
            }
        }
    }
    Ok(gone as u64)
}

fn prune_queue(tx: &Tx<'_>, queue: QueueId, state: State, before: Timestamp, most: usize) -> Result<usize, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("upkeep.sql", "prune_archive"))?;
    let past: Vec<i64> =
        rows::column(select.query(params![queue.0, state.as_str(), before.as_millis(), most as i64])?)?;
    let mut job = tx.conn.prepare_cached(sql!("upkeep.sql", "archive_delete"))?;
    let mut attempts = tx.conn.prepare_cached(sql!("attempts.sql", "attempts_delete"))?;
    for id in &past {
        job.execute([id])?;
        attempts.execute([id])?;
    }
    Ok(past.len())
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
