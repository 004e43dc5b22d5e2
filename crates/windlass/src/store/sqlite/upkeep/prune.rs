//! Prune: what is past its retention goes, and old tallies are folded. A bounded amount of work per call.

use crate::job::QueueId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::retention::keep;
use crate::store::{Keep, StoreError, WORKERS_FOR};
use crate::tally::{DELTAS_FOR, HOUR, MINUTE, MINUTES_FOR, fold_before, start_of};
use rusqlite::params;
use windlass_core::{State, Timestamp};

/// The most archived jobs that go per call: some ten milliseconds of writing.
const JOBS: usize = 2_000;
/// The most idempotency keys looked at per call.
const KEYS: i64 = 2_000;
/// The most tally deltas folded per call.
const DELTAS: i64 = 20_000;
/// The most hours of minutes folded per call.
const HOURS: usize = 24;

impl Tx<'_> {
    pub(in crate::store::sqlite) fn prune(&mut self, keys_after: &mut i64) -> Result<u64, StoreError> {
        let gone = self.prune_archive()?;
        self.prune_keys(keys_after)?;
        self.conn.prepare_cached(sql!("workers_prune"))?.execute([(self.now - WORKERS_FOR).as_millis()])?;
        self.fold_minutes()?;
        self.fold_hours()?;
        Ok(gone)
    }

    fn prune_archive(&mut self) -> Result<u64, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("queue_select", "queues_all"))?;
        let queues: Vec<i64> = rows::column(select.query([])?)?;
        let mut gone = 0;
        for queue in queues.into_iter().map(QueueId) {
            let retention = self.retentions.of(self.conn, self.names, queue)?;
            for state in [State::Succeeded, State::Cancelled, State::Failed] {
                let before = match keep(retention, state) {
                    Keep::Drop => Timestamp::MAX,
                    Keep::Forever => continue,
                    Keep::For(span) if self.now.since(Timestamp::EPOCH) < span => continue,
                    Keep::For(span) => self.now - span,
                };
                gone += self.prune_queue(queue, state, before, JOBS - gone)?;
                if gone == JOBS {
                    return Ok(gone as u64);
                }
            }
        }
        Ok(gone as u64)
    }

    fn prune_queue(&self, queue: QueueId, state: State, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("prune_archive"))?;
        let past: Vec<i64> =
            rows::column(select.query(params![queue.0, state.as_str(), before.as_millis(), most as i64])?)?;
        let mut job = self.conn.prepare_cached(sql!("archive_delete"))?;
        let mut attempts = self.conn.prepare_cached(sql!("attempts_delete"))?;
        for id in &past {
            job.execute([id])?;
            attempts.execute([id])?;
        }
        Ok(past.len())
    }

    /// Keys whose window is over; and, a stretch at a time, keys whose job's life is.
    fn prune_keys(&self, after: &mut i64) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql!("prune_keys"))?.execute([self.now.as_millis(), KEYS])?;
        let mut next = self.conn.prepare_cached(sql!("keys_next"))?;
        let last: Option<i64> = next.query_row([*after, KEYS], |row| row.get(0))?;
        self.conn.prepare_cached(sql!("prune_live_keys"))?.execute([*after, KEYS])?;
        *after = last.unwrap_or(0);
        Ok(())
    }

    fn fold_minutes(&self) -> Result<(), StoreError> {
        let before = fold_before(self.now, DELTAS_FOR, MINUTE).as_millis();
        let mut bound = self.conn.prepare_cached(sql!("tally_fold_bound"))?;
        let bound: Option<i64> = bound.query_row([before, DELTAS], |row| row.get(0))?;
        if let Some(bound) = bound {
            self.conn.prepare_cached(sql!("tally_fold_minutes"))?.execute([before, bound])?;
            self.conn.prepare_cached(sql!("tally_folded_minutes"))?.execute([before, bound])?;
        }
        Ok(())
    }

    fn fold_hours(&self) -> Result<(), StoreError> {
        let before = fold_before(self.now, MINUTES_FOR, HOUR).as_millis();
        for _ in 0..HOURS {
            let mut oldest = self.conn.prepare_cached(sql!("tally_oldest_minute"))?;
            let Some(oldest) = oldest.query_row([before], |row| row.get::<_, Option<i64>>(0))? else { break };
            let hour = start_of(Timestamp::from_millis(oldest), HOUR).as_millis();
            self.conn.prepare_cached(sql!("tally_fold_hour"))?.execute([hour])?;
            self.conn.prepare_cached(sql!("tally_folded_hour"))?.execute([hour])?;
        }
        Ok(())
    }
}
