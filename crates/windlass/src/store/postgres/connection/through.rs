//! Statements through a caller's driver: in a transaction of the caller, or on a connection of the caller's pool. Such
//! a driver runs one at a time.

use crate::store::StoreError;
use crate::store::postgres::connection::fault::classify_code;
use crate::store::postgres::statements::row::Row;
use crate::transaction::driver::{Driver, DriverError, Parameter, Pooled};
use bytes::BytesMut;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;
use tokio_postgres::types::{IsNull, ToSql, Type};

pub(in crate::store::postgres) struct Through<'a>(Mutex<&'a mut dyn Driver>);

impl<'a> Through<'a> {
    pub(in crate::store::postgres) fn new(driver: &'a mut dyn Driver) -> Self {
        Self(Mutex::new(driver))
    }

    pub(in crate::store::postgres) async fn query(
        &self,
        statement: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, StoreError> {
        query(&mut **self.0.lock().await, statement, params).await
    }
}

/// A connection of the caller's pool.
pub(in crate::store::postgres) struct Taken {
    connection: Mutex<Box<dyn Pooled>>,
    /// Set after an error that the server did not report.
    is_lost: AtomicBool,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").finish_non_exhaustive()
    }
}

impl Taken {
    pub(in crate::store::postgres) fn new(connection: Box<dyn Pooled>) -> Self {
        Self { connection: Mutex::new(connection), is_lost: AtomicBool::new(false) }
    }

    pub(in crate::store::postgres) async fn query(
        &self,
        statement: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = query(&mut **self.connection.lock().await, statement, params).await;
        if matches!(rows, Err(StoreError::Unavailable(_))) {
            self.is_lost.store(true, Ordering::Release);
        }
        rows
    }

    pub(in crate::store::postgres) async fn run(&self, script: &str) -> Result<(), StoreError> {
        self.send(script).await.map_err(fault)
    }

    /// After this was sent, an error means that the outcome is unknown.
    pub(in crate::store::postgres) async fn commit(&self) -> Result<(), StoreError> {
        self.send("COMMIT").await.map_err(StoreError::unknown)
    }

    async fn send(&self, script: &str) -> Result<(), DriverError> {
        let done = self.connection.lock().await.run(script).await;
        if done.as_ref().is_err_and(|error| error.code.is_none()) {
            self.is_lost.store(true, Ordering::Release);
        }
        done
    }

    pub(in crate::store::postgres) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(in crate::store::postgres) fn close(self) {
        self.connection.into_inner().close();
    }
}

async fn query<D: Driver + ?Sized>(
    driver: &mut D,
    statement: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, StoreError> {
    let params = params.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
    let rows = driver.query(statement, params).await.map_err(fault)?;
    Ok(rows.into_iter().map(Row::Callers).collect())
}

fn parameter((value, kind): &(&(dyn ToSql + Sync), Type)) -> Result<Parameter, StoreError> {
    let mut bytes = BytesMut::new();
    let is_null = value.to_sql_checked(kind, &mut bytes).map_err(|error| StoreError::Invalid(error.to_string()))?;
    let bytes = match is_null {
        IsNull::Yes => None,
        IsNull::No => Some(bytes.to_vec()),
    };
    Ok(Parameter { oid: kind.oid(), bytes })
}

fn fault(error: DriverError) -> StoreError {
    match &error.code {
        Some(code) => classify_code(code, &error.message).unwrap_or_else(|| StoreError::unavailable(error)),
        None => StoreError::unavailable(error),
    }
}
