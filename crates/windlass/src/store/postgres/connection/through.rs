//! Statements through the driver of a caller's transaction. Such a driver runs one at a time.

use crate::store::StoreError;
use crate::store::postgres::connection::fault::classify_code;
use crate::store::postgres::statements::row::Row;
use crate::transaction::driver::{Driver, DriverError, Parameter};
use bytes::BytesMut;
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
        let params = params.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
        let rows = self.0.lock().await.query(statement, params).await.map_err(fault)?;
        Ok(rows.into_iter().map(Row::Callers).collect())
    }
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
