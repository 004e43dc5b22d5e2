//! One command's part of a transaction: what it uses, and what it leaves for the commit.

use crate::clock::Clock;
use crate::job::QueueId;
use crate::random::Random;
use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::names::Names;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::retention::Retentions;
use crate::tally::{Tallies, Tally};
use rusqlite::{Connection, params_from_iter, types::Value};
use std::collections::BTreeMap;
use windlass_core::job::Kind;
use windlass_core::{JobId, Timestamp};

pub(in crate::store::sqlite) struct Tx<'t> {
    pub conn: &'t Connection,
    pub names: &'t mut Names,
    pub retentions: &'t mut Retentions,
    pub random: &'t Random,
    pub now: Timestamp,
    /// The time since the machine started, which leases are measured with.
    pub boot: i64,
    /// Counted by this command.
    counts: Counts,
    /// Counts of the last queue and kind: most batches have only one.
    run: Option<(QueueId, Kind, Tally)>,
    /// Whether work may have become due.
    pub rings: bool,
}

impl<'t> Tx<'t> {
    pub(in crate::store::sqlite) fn new(
        conn: &'t Connection,
        names: &'t mut Names,
        retentions: &'t mut Retentions,
        random: &'t Random,
        clock: &Clock,
    ) -> Self {
        let (now, boot) = (clock.now(), clock.boot());
        Self { conn, names, retentions, random, now, boot, counts: Counts::default(), run: None, rings: false }
    }

    pub(in crate::store::sqlite) fn count(&mut self, queue: QueueId, kind: &Kind, delta: Tally) {
        match &mut self.run {
            Some((of, what, tally)) if *of == queue && what == kind => *tally += delta,
            _ => {
                self.end_run();
                self.run = Some((queue, kind.clone(), delta));
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((queue, kind, tally)) = self.run.take() {
            self.counts.tallies.add(queue, &kind, tally);
        }
    }

    /// So many more jobs wait in a lane, or fewer.
    pub(in crate::store::sqlite) fn waiting(&mut self, lane: i64, more: i64) {
        *self.counts.waiting.entry(lane).or_default() += more;
    }

    /// Returns the counts and resets them to zero.
    pub(in crate::store::sqlite) fn take_counts(&mut self) -> Counts {
        self.end_run();
        std::mem::take(&mut self.counts)
    }

    /// The first of `count` fresh ids in a row.
    pub(in crate::store::sqlite) fn draw_ids(&self, count: i64) -> Result<JobId, StoreError> {
        let last: i64 = self.conn.prepare_cached(sql!("enqueue.sql", "ids_reserve"))?.query_row([count], rows::only)?;
        Ok(JobId(last - count + 1))
    }

    /// Runs `work` atomically: if it fails or asks for it, everything it wrote is rolled back.
    pub(in crate::store::sqlite) fn all_or_nothing<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(T, SavepointEnd), StoreError>,
    ) -> Result<T, StoreError> {
        self.conn.prepare_cached("SAVEPOINT windlass_all")?.execute([])?;
        let done = work(self);
        if !matches!(done, Ok((_, SavepointEnd::Keep))) {
            if self.conn.is_autocommit() {
                // The whole transaction was already rolled back.
                return done.map(|(value, _)| value);
            }
            self.names.forget();
            self.take_counts();
            self.rings = false;
            self.conn.prepare_cached("ROLLBACK TO windlass_all")?.execute([])?;
        }
        self.conn.prepare_cached("RELEASE windlass_all")?.execute([])?;
        done.map(|(value, _)| value)
    }
}

/// Whether the writes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::sqlite) enum SavepointEnd {
    Keep,
    Undo,
}

/// What a transaction counts and writes at its end.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Counts {
    pub tallies: Tallies,
    /// How many more jobs wait, by lane.
    waiting: BTreeMap<i64, i64>,
}

impl Counts {
    pub(in crate::store::sqlite) fn absorb(&mut self, other: &Self) {
        for (queue, kind, tally) in other.tallies.iter() {
            self.tallies.add(queue, kind, *tally);
        }
        for (lane, more) in &other.waiting {
            *self.waiting.entry(*lane).or_default() += more;
        }
    }

    pub(in crate::store::sqlite) fn write(&self, conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
        let mut add = conn.prepare_cached(sql!("queues.sql", "lanes_add"))?;
        for (lane, more) in self.waiting.iter().filter(|(_, more)| **more != 0) {
            add.execute([lane, more])?;
        }
        write_tallies(conn, &self.tallies, now)
    }
}

/// Writes deltas: one row per queue and kind.
fn write_tallies(conn: &Connection, tallies: &Tallies, now: Timestamp) -> Result<(), StoreError> {
    if tallies.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(sql!("tallies.sql", "tally"))?;
    for (queue, kind, tally) in tallies.iter() {
        let head = [Value::Integer(now.as_millis()), Value::Integer(queue.0), Value::Text(kind.as_str().to_owned())];
        insert.execute(params_from_iter(head.into_iter().chain(tally.values().map(Value::Integer))))?;
    }
    Ok(())
}
