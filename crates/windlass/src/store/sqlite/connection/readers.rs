//! Readers: a few connections that cannot write, each used by one blocking task at a time. Each read uses one snapshot,
//! so a job that moves to the archive meanwhile is neither missed nor seen twice.

use crate::store::StoreError;
use crate::store::sqlite::connection::connect;
use crate::store::sqlite::connection::fault;
use crate::store::sqlite::reads::names::Names;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Connections for reads.
const READERS: usize = 4;

pub(in crate::store::sqlite) struct Reader {
    pub conn: Connection,
    pub names: Names,
}

pub(in crate::store::sqlite) struct Readers {
    path: PathBuf,
    free: Semaphore,
    /// `None` once the store is closing: connections in use are then dropped after use.
    idle: Mutex<Option<Vec<Reader>>>,
}

impl Readers {
    pub(in crate::store::sqlite) fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, free: Semaphore::new(READERS), idle: Mutex::new(Some(Vec::new())) })
    }

    /// Runs `read` on a snapshot of the database.
    pub(in crate::store::sqlite) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _permit = self.free.acquire().await.expect("the semaphore is never closed");
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || readers.read_now(read));
        task.await.unwrap_or_else(|error| Err(StoreError::unavailable(error)))
    }

    fn read_now<T>(&self, read: impl FnOnce(&mut Reader) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle().as_mut().and_then(Vec::pop);
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader { conn: connect::reader(&self.path)?, names: Names::default() },
        };
        reader.conn.prepare_cached("BEGIN")?.execute([])?;
        let result = read(&mut reader);
        let ended = reader.conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        let is_sound = ended.is_ok() && !result.as_ref().is_err_and(fault::spoils_connection);
        if is_sound && let Some(idle) = self.idle().as_mut() {
            idle.push(reader);
        }
        result
    }

    /// Closes the connections that are not in use, and the others when they come back.
    pub(in crate::store::sqlite) fn close(&self) {
        drop(self.idle().take());
    }

    fn idle(&self) -> MutexGuard<'_, Option<Vec<Reader>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
