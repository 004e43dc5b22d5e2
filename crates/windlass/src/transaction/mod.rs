//! Callers' own transactions: a job that exists only if the caller commits, and a job that is completed only if its
//! effects are committed.

#[cfg(feature = "postgres")]
pub mod driver;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "postgres")]
mod waiting;

use crate::attempt::Attempt;
use crate::client::enqueue::{Enqueue, EnqueueError};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::leases::transition::{Trace, commit_of};
use crate::store::StoreError;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::store::{Commit, Committed};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use windlass_core::{JobId, Outcome, Roll};

/// Compiles the guides.
#[cfg(all(doctest, feature = "sqlite", feature = "macros"))]
#[doc = include_str!("../../../../docs/guides/transactions/rusqlite.md")]
pub struct RusqliteGuide;

/// Compiles the guides.
#[cfg(all(doctest, feature = "postgres", feature = "macros"))]
#[doc = include_str!("../../../../docs/guides/transactions/tokio-postgres.md")]
pub struct TokioPostgresGuide;

/// Why a call could not join the caller's transaction. Roll the transaction back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// The job cannot be stored.
    #[error(transparent)]
    Enqueue(#[from] EnqueueError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The attempt's lease was lost: another worker may run the job now, or its outcome is already committed.
    #[error("the attempt no longer holds its job; nothing of it may be committed")]
    Stale,
    /// The transaction belongs to another database than the jobs.
    #[error("the jobs are not in a {0} database that this Windlass opened by its URL")]
    OtherStore(&'static str),
}

/// A transaction that a job can be stored in: of `rusqlite` (blocking) or `tokio_postgres` (async); with the crates
/// `windlass-sqlx` and `windlass-diesel` also of those.
///
/// `Crate` is a type of the crate that implements this, so that other crates can do so for drivers they do not own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction that Windlass can use",
    note = "pass `&transaction` of rusqlite (feature `sqlite`) or tokio_postgres (feature `postgres`)",
    note = "for sqlx depend on `windlass-sqlx`, for diesel on `windlass-diesel`, and say `use windlass_sqlx as _;`"
)]
pub trait EnqueueIn<Crate = ()> {
    /// The new job's id, or a future of it.
    type Stored<'w>
    where
        Self: 'w;
    /// Stores the job.
    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w;
}

/// A transaction that an attempt can be completed in; see [`EnqueueIn`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction that Windlass can use",
    note = "pass `&transaction` of rusqlite (feature `sqlite`) or tokio_postgres (feature `postgres`)",
    note = "for sqlx depend on `windlass-sqlx`, for diesel on `windlass-diesel`, and say `use windlass_sqlx as _;`"
)]
pub trait CompleteIn<Crate = ()> {
    /// The result, or a future of it.
    type Completed<'w>
    where
        Self: 'w;
    /// Completes the attempt.
    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w;
}

impl<'w> Enqueue<'w> {
    /// Stores the job in the caller's transaction: it exists only if the caller commits. Workers notice it within a
    /// poll interval, or at once after `Windlass::wake`.
    pub fn enqueue_in<C, T: EnqueueIn<C> + 'w>(self, transaction: T) -> T::Stored<'w> {
        transaction.store(self)
    }
}

impl Attempt {
    /// Records this attempt's success in the caller's transaction, together with the effects in it: either both are
    /// committed or neither. Commit, then return `Ok` from the handler. If it fails, roll back and return the error.
    pub fn complete_in<'w, C, T: CompleteIn<C> + 'w>(&'w self, transaction: T) -> T::Completed<'w> {
        transaction.complete(self)
    }
}

/// The commit of an attempt's success, as the worker would make it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn success(attempt: &Attempt) -> Commit {
    let trace = Trace {
        started_at: attempt.started_at(),
        finished_at: attempt.clock().now(),
        worker: attempt.worker().to_owned(),
        note: attempt.0.read_note(),
        result: None,
    };
    // A success needs no delay, so any roll will do.
    let commit = commit_of(&attempt.0.job, &Outcome::Succeeded, trace, Roll(0));
    attempt.windlass().inner().seal_commit(commit)
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn applied(committed: &[Committed]) -> Result<(), TransactionError> {
    match committed {
        [Committed::Applied(_) | Committed::Repeated] => Ok(()),
        _ => Err(TransactionError::Stale),
    }
}
