//! Transactions of `tokio_postgres`, also of those that `deadpool_postgres` wraps.

use super::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError, applied, success};
use crate::client::enqueue::id_of;
use crate::client::inner::Backend;
use crate::client::windlass::Windlass;
use crate::store::postgres::PostgresStore;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio_postgres::Transaction;

impl<'t> EnqueueIn for &'t Transaction<'_> {
    type Stored<'w>
        = BoxFuture<'w, Result<JobId, TransactionError>>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        Box::pin(async move {
            let store = store_of(job.windlass())?.clone();
            let windlass = job.windlass();
            let job = windlass.inner().seal_new(job.complete().await?).await?;
            let mut stored = store.enqueue_in(self, vec![job]).await?;
            Ok(id_of(stored.pop().expect("a store answers for every job"))?)
        })
    }
}

impl<'t> CompleteIn for &'t Transaction<'_> {
    type Completed<'w>
        = BoxFuture<'w, Result<(), TransactionError>>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        Box::pin(async move {
            let store = store_of(attempt.windlass())?;
            applied(&store.commit_in(self, vec![success(attempt)], Vec::new()).await?)
        })
    }
}

#[cfg(feature = "deadpool")]
impl<'t> EnqueueIn for &'t deadpool_postgres::Transaction<'_> {
    type Stored<'w>
        = BoxFuture<'w, Result<JobId, TransactionError>>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        EnqueueIn::store(&**self, job)
    }
}

#[cfg(feature = "deadpool")]
impl<'t> CompleteIn for &'t deadpool_postgres::Transaction<'_> {
    type Completed<'w>
        = BoxFuture<'w, Result<(), TransactionError>>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        CompleteIn::complete(&**self, attempt)
    }
}

pub(super) fn store_of(windlass: &Windlass) -> Result<&Arc<PostgresStore>, TransactionError> {
    match windlass.inner().backend() {
        Backend::Postgres(store) => Ok(store),
        #[cfg(feature = "sqlite")]
        Backend::Sqlite(_) => Err(TransactionError::OtherStore("Postgres")),
        Backend::Other => Err(TransactionError::OtherStore("Postgres")),
    }
}
