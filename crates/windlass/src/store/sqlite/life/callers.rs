//! Callers' own transactions: enqueue and commit on the caller's connection to the same file. The caller's COMMIT
//! decides whether they take effect. The statements are those of the writer.

use crate::job::{LeaseId, NewJob};
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::commit;
use crate::store::sqlite::life::enqueue;
use crate::store::sqlite::reads::names::Names;
use crate::store::sqlite::reads::settings;
use crate::store::sqlite::upkeep::retention::Retentions;
use crate::store::{Atomicity, Commit, Committed, Enqueued, SettingKey, StoreError};
use rusqlite::Connection;

impl SqliteStore {
    /// Stores new jobs in the caller's transaction on `conn`, which must be open on this store's file: they exist
    /// exactly if the caller commits. Workers notice them within a poll.
    ///
    /// # Errors
    /// Any error leaves the transaction to the caller: roll it back.
    pub fn enqueue_in(&self, conn: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.with(conn, |tx| enqueue::enqueue(tx, jobs, Atomicity::Each))
    }

    /// Stores a setting in the caller's transaction on `conn`.
    ///
    /// # Errors
    /// Any error leaves the transaction to the caller: roll it back.
    pub(crate) fn put_setting_in(&self, conn: &Connection, key: &SettingKey, value: &str) -> Result<(), StoreError> {
        self.with(conn, |tx| settings::put_setting(tx, key, Some(value)))
    }

    /// Applies transitions in the caller's transaction on `conn`, together with the effects it holds: exactly once.
    ///
    /// # Errors
    /// Any error leaves the transaction to the caller: roll it back.
    pub fn commit_in(
        &self,
        conn: &Connection,
        commits: &[Commit],
        ended: &[LeaseId],
    ) -> Result<Vec<Committed>, StoreError> {
        self.with(conn, |tx| commit::commit(tx, commits, ended))
    }

    fn with<T>(
        &self,
        conn: &Connection,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if conn.is_autocommit() {
            return Err(StoreError::Invalid("begin a transaction on the connection first".into()));
        }
        // Cached for this call only: the caller may roll back the rows they were read from.
        let (mut names, mut retentions) = (Names::default(), Retentions::default());
        let mut tx = Tx::new(conn, &mut names, &mut retentions, &self.random, &self.clock);
        let result = work(&mut tx)?;
        tx.take_counts().write(conn, tx.now)?;
        Ok(result)
    }
}
