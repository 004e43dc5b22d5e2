//! Other drivers of Postgres: what one has to offer so that jobs can be stored and completed in its transactions, and
//! that a store can use its pool. `windlass-sqlx` and `windlass-diesel` are built on this.
//!
//! Windlass sends its own statements through the caller's transaction, in the binary format of the extended protocol.

#[cfg(feature = "deadpool")]
mod deadpool;
mod pool;

pub use pool::{Pool, Pooled};

use super::{TransactionError, applied, success, waiting};
use crate::attempt::Attempt;
use crate::client::enqueue::{Enqueue, id_of};
use crate::transaction::postgres::store_of;
use futures_util::future::BoxFuture;
use windlass_core::JobId;

/// An open transaction of some driver.
pub trait Driver: Send {
    /// Runs one statement in the transaction and returns its rows. Results are wanted in the binary format.
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>>;
}

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// The number of its type in `pg_type`; always a built-in type.
    pub oid: u32,
    /// Its value in the binary format; `None` for NULL.
    pub bytes: Option<Vec<u8>>,
}

/// A row that a statement returned.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its values in the order of their columns.
    pub values: Vec<Value>,
}

/// A value of a row.
#[derive(Debug, Clone)]
pub struct Value {
    /// The column's name.
    pub column: String,
    /// The number of its type in `pg_type`.
    pub oid: u32,
    /// The value in the binary format; `None` for NULL.
    pub bytes: Option<Vec<u8>>,
}

/// Why a driver could not run a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DriverError {
    /// The server's SQLSTATE, if the server refused it and the driver passes this on.
    pub code: Option<String>,
    /// The server's or the driver's message.
    pub message: String,
}

/// Stores a job in the transaction: it exists only if the caller commits.
///
/// # Errors
/// After an error the transaction can only be rolled back.
pub async fn enqueue(job: Enqueue<'_>, driver: &mut dyn Driver) -> Result<JobId, TransactionError> {
    let store = store_of(job.windlass())?.clone();
    let windlass = job.windlass();
    let job = windlass.inner().seal_new(job.complete().await?).await?;
    let mut stored = store.enqueue_through(driver, vec![job]).await?;
    Ok(id_of(stored.pop().expect("a store answers for every job"))?)
}

/// Completes an attempt in the transaction that holds its effects.
///
/// # Errors
/// After an error the transaction can only be rolled back.
pub async fn complete(attempt: &Attempt, driver: &mut dyn Driver) -> Result<(), TransactionError> {
    let store = store_of(attempt.windlass())?;
    applied(&store.commit_through(driver, vec![success(attempt)], Vec::new()).await?)
}

/// As [`enqueue`], for drivers that block: returns when the job is stored.
///
/// # Errors
/// After an error the transaction can only be rolled back.
pub fn enqueue_blocking(job: Enqueue<'_>, driver: &mut dyn Driver) -> Result<JobId, TransactionError> {
    let store = store_of(job.windlass())?.clone();
    waiting::wait(store.runtime(), enqueue(job, driver))?
}

/// As [`complete`], for drivers that block.
///
/// # Errors
/// After an error the transaction can only be rolled back.
pub fn complete_blocking(attempt: &Attempt, driver: &mut dyn Driver) -> Result<(), TransactionError> {
    let store = store_of(attempt.windlass())?;
    waiting::wait(store.runtime(), complete(attempt, driver))?
}
