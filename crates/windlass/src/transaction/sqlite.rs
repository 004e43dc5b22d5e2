//! Transactions of `rusqlite`: they block, and so do these functions.

use super::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError, applied, success};
use crate::client::enqueue::id_of;
use crate::client::inner::Backend;
use crate::client::windlass::Windlass;
use crate::store::sqlite::SqliteStore;
use rusqlite::{Connection, Transaction};
use std::sync::Arc;

impl<'t> EnqueueIn for &'t Connection {
    type Stored<'w>
        = Result<JobId, TransactionError>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        let store = store_of(job.windlass())?;
        let inner = job.windlass().inner();
        let catalogue = inner.catalogue_now()?;
        let job = job.complete_with(&catalogue)?;
        let job = inner.seal_new_by(job, |key, value| store.put_setting_in(self, key, value))?;
        let mut stored = store.enqueue_in(self, &[job])?;
        Ok(id_of(stored.pop().expect("a store answers for every job"))?)
    }
}

impl<'t> EnqueueIn for &'t Transaction<'_> {
    type Stored<'w>
        = Result<JobId, TransactionError>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        EnqueueIn::store(&**self, job)
    }
}

impl<'t> CompleteIn for &'t Connection {
    type Completed<'w>
        = Result<(), TransactionError>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        let store = store_of(attempt.windlass())?;
        applied(&store.commit_in(self, &[success(attempt)], &[])?)
    }
}

impl<'t> CompleteIn for &'t Transaction<'_> {
    type Completed<'w>
        = Result<(), TransactionError>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        CompleteIn::complete(&**self, attempt)
    }
}

fn store_of(windlass: &Windlass) -> Result<&Arc<SqliteStore>, TransactionError> {
    match windlass.inner().backend() {
        Backend::Sqlite(store) => Ok(store),
        #[cfg(feature = "postgres")]
        Backend::Postgres(_) => Err(TransactionError::OtherStore("SQLite")),
        Backend::Other => Err(TransactionError::OtherStore("SQLite")),
    }
}
