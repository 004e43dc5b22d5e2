//! Transactions on SQLite: Windlass's statements run on sqlx's own connection, by its handle.

use crate::Sqlx;
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use sqlx::SqliteConnection;
use windlass::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, StoreError, TransactionError};

/// Changes nothing, but waits for the file's write lock on sqlx's thread, so that the statements after it never wait.
const LOCK: &str = "DELETE FROM windlass_queues WHERE 0";

impl<'t> EnqueueIn<Sqlx> for &'t mut SqliteConnection {
    type Stored<'w>
        = BoxFuture<'w, Result<JobId, TransactionError>>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        Box::pin(async move { with_handle(self, |connection| job.enqueue_in(connection)).await })
    }
}

impl<'t> CompleteIn<Sqlx> for &'t mut SqliteConnection {
    type Completed<'w>
        = BoxFuture<'w, Result<(), TransactionError>>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        Box::pin(async move { with_handle(self, |connection| attempt.complete_in(connection)).await })
    }
}

async fn with_handle<T>(
    connection: &mut SqliteConnection,
    work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
) -> Result<T, TransactionError> {
    sqlx::query(LOCK).execute(&mut *connection).await.map_err(StoreError::unavailable)?;
    let mut handle = connection.lock_handle().await.map_err(StoreError::unavailable)?;
    // SAFETY: `handle` is locked until the end of this function, so nothing else uses the connection meanwhile. The
    // borrowed `Connection` finalizes its statements when it is dropped, before that, and does not close the handle.
    let borrowed = unsafe { Connection::from_handle(handle.as_raw_handle().as_ptr().cast()) };
    work(&borrowed.map_err(StoreError::unavailable)?)
}

/// The URL of a pool's file. A database in memory has none: its name is then refused as a store.
pub(crate) fn url(options: &sqlx::sqlite::SqliteConnectOptions) -> String {
    let name = options.get_filename().display().to_string();
    if name == ":memory:" || name.starts_with("file:") { name } else { format!("sqlite:{name}") }
}
