//! Callers' own transactions: a job that exists exactly if the caller commits, and a job that is done exactly if its
//! effects are.

use crate::attempt::Attempt;
use crate::enqueue::{Enqueue, EnqueueError};
use crate::store::StoreError;
use windlass_core::JobId;

/// Why something did not become part of a caller's transaction. Roll it back.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    #[error(transparent)]
    Enqueue(#[from] EnqueueError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The attempt's lease was lost: somebody else runs the job now, or its outcome is committed already.
    #[error("the attempt no longer holds its job; nothing of it may be committed")]
    Stale,
    /// The transaction is not one of the database that the jobs are in.
    #[error("the jobs are not in a {0} database that this Windlass opened by its URL")]
    OtherStore(&'static str),
}

/// A transaction that a job can be stored in: of `rusqlite` (at once) or `tokio_postgres` (awaited).
pub trait EnqueueIn {
    /// The new job's id, or the future of it.
    type Stored;
    fn store(self, job: Enqueue<'_>) -> Self::Stored;
}

/// A transaction that an attempt can be completed in.
pub trait CompleteIn {
    type Completed;
    fn complete(self, attempt: &Attempt) -> Self::Completed;
}

impl Enqueue<'_> {
    /// Stores the job in the caller's transaction: it exists exactly if the caller commits. Workers notice it within a poll, or
    /// at once after `Windlass::wake`.
    pub fn enqueue_in<T: EnqueueIn>(self, transaction: T) -> T::Stored {
        transaction.store(self)
    }
}

impl Attempt {
    /// Records this attempt's success in the caller's transaction, together with the effects it holds: both happen, or
    /// neither. Commit, then return `Ok` from the handler. If it fails, roll back and return the error.
    pub fn complete_in<T: CompleteIn>(&self, transaction: T) -> T::Completed {
        transaction.complete(self)
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError};
    use crate::dice::Dice;
    use crate::enqueue::id_of;
    use crate::settle::{Trace, settle};
    use crate::store::Committed;
    use crate::store::sqlite::SqliteStore;
    use crate::windlass::{Backend, Windlass};
    use rusqlite::{Connection, Transaction};
    use std::sync::Arc;
    use windlass_core::Outcome;

    impl EnqueueIn for &Connection {
        type Stored = Result<JobId, TransactionError>;

        fn store(self, job: Enqueue<'_>) -> Self::Stored {
            let store = store_of(job.windlass())?;
            let catalogue = job.windlass().catalogue_now()?;
            let job = job.complete_with(&catalogue)?;
            let mut stored = store.enqueue_in(self, &[job])?;
            Ok(id_of(stored.pop().expect("a store answers for every job"))?)
        }
    }

    impl EnqueueIn for &Transaction<'_> {
        type Stored = Result<JobId, TransactionError>;

        fn store(self, job: Enqueue<'_>) -> Self::Stored {
            EnqueueIn::store(&**self, job)
        }
    }

    impl CompleteIn for &Connection {
        type Completed = Result<(), TransactionError>;

        fn complete(self, attempt: &Attempt) -> Self::Completed {
            let store = store_of(attempt.windlass())?;
            let trace = Trace {
                started_at: attempt.started_at(),
                finished_at: attempt.clock().now(),
                worker: attempt.worker().to_owned(),
                note: attempt.0.read_note(),
                result: None,
            };
            // Success draws no delay: any roll will do.
            let commit = settle(attempt.job(), &Outcome::Succeeded, trace, Dice::seeded(0).roll());
            match store.commit_in(self, &[commit], &[])?.as_slice() {
                [Committed::Applied(_) | Committed::Repeated] => Ok(()),
                _ => Err(TransactionError::Stale),
            }
        }
    }

    impl CompleteIn for &Transaction<'_> {
        type Completed = Result<(), TransactionError>;

        fn complete(self, attempt: &Attempt) -> Self::Completed {
            CompleteIn::complete(&**self, attempt)
        }
    }

    fn store_of(windlass: &Windlass) -> Result<&Arc<SqliteStore>, TransactionError> {
        match windlass.backend() {
            Backend::Sqlite(store) => Ok(store),
            Backend::Other => Err(TransactionError::OtherStore("SQLite")),
        }
    }
}
