//! Folding: deltas become seconds as soon as there are many, in the transaction of the commit that made them many. So
//! reading a busy window needs only a few rows. `prune` folds minutes and hours.

use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::rows;
use rusqlite::Connection;

/// Deltas that may accumulate: folding this many takes about a millisecond.
const MANY: usize = 500;

/// How far this writer has folded.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Folding {
    /// Deltas written since.
    unfolded: usize,
    /// The last row that was there after it.
    upto: i64,
}

impl Folding {
    /// The open transaction wrote this many deltas.
    pub(in crate::store::sqlite) fn wrote(&mut self, conn: &Connection, deltas: usize) -> Result<(), StoreError> {
        self.unfolded += deltas;
        if self.unfolded < MANY {
            return Ok(());
        }
        self.unfolded = 0;
        let last = || conn.prepare_cached(sql!("tallies.sql", "tally_last"))?.query_row([], rows::only::<i64>);
        let bound = last()?;
        // Ids restart when upkeep has removed all rows.
        let after = if self.upto < bound { self.upto } else { 0 };
        conn.prepare_cached(sql!("tallies.sql", "tally_fold_seconds"))?.execute([after, bound])?;
        conn.prepare_cached(sql!("tallies.sql", "tally_folded_seconds"))?.execute([after, bound])?;
        self.upto = last()?;
        Ok(())
    }
}
