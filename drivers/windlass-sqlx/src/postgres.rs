//! Transactions on Postgres: Windlass's statements are sent through sqlx.

use crate::Sqlx;
use futures_util::future::BoxFuture;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgConnection, PgRow, PgTypeInfo, Postgres};
use sqlx::{Arguments as _, Column as _, Row as _, ValueRef as _};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use windlass::driver::{self, Driver, DriverError, Parameter, Row, Value};
use windlass::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError};

impl<'t> EnqueueIn<Sqlx> for &'t mut PgConnection {
    type Stored<'w>
        = BoxFuture<'w, Result<JobId, TransactionError>>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        Box::pin(async move { driver::enqueue(job, &mut Through(self)).await })
    }
}

impl<'t> CompleteIn<Sqlx> for &'t mut PgConnection {
    type Completed<'w>
        = BoxFuture<'w, Result<(), TransactionError>>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        Box::pin(async move { driver::complete(attempt, &mut Through(self)).await })
    }
}

struct Through<'t>(&'t mut PgConnection);

impl Driver for Through<'_> {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>> {
        Box::pin(query(self.0, statement, parameters))
    }
}

pub(crate) async fn query(
    connection: &mut PgConnection,
    statement: &str,
    parameters: Vec<Parameter>,
) -> Result<Vec<Row>, DriverError> {
    let mut arguments = PgArguments::default();
    for parameter in parameters {
        arguments.add(Raw(parameter)).map_err(|error| refused(&error.to_string()))?;
    }
    // Nothing stays prepared on a connection that is not ours.
    let query = sqlx::query_with::<Postgres, _>(interned(statement), arguments).persistent(false);
    let rows = query.fetch_all(connection).await.map_err(|error| fault(&error))?;
    rows.iter().map(read).collect()
}

/// A parameter that is encoded already.
struct Raw(Parameter);

impl sqlx::Type<Postgres> for Raw {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("unknown")
    }

    fn compatible(_: &PgTypeInfo) -> bool {
        true
    }
}

impl Encode<'_, Postgres> for Raw {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(match &self.0.bytes {
            None => IsNull::Yes,
            Some(bytes) => {
                buffer.extend_from_slice(bytes);
                IsNull::No
            }
        })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.0.oid)))
    }
}

fn read(row: &PgRow) -> Result<Row, DriverError> {
    let value = |(place, column): (usize, &sqlx::postgres::PgColumn)| {
        let value = row.try_get_raw(place).map_err(|error| fault(&error))?;
        let bytes = if value.is_null() {
            None
        } else {
            Some(value.as_bytes().map_err(|error| refused(&error.to_string()))?.to_vec())
        };
        let oid = column.type_info().oid().map_or(0, |oid| oid.0);
        Ok(Value { column: column.name().to_owned(), oid, bytes })
    };
    let values = row.columns().iter().enumerate().map(value).collect::<Result<_, _>>()?;
    Ok(Row { values })
}

pub(crate) fn fault(error: &sqlx::Error) -> DriverError {
    let code = error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned());
    let message = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    DriverError { code, message }
}

fn refused(message: &str) -> DriverError {
    DriverError { code: None, message: message.to_owned() }
}

/// sqlx 0.9 wants statements that live for ever. There are a hundred of them for each schema, so each is kept once.
pub(crate) fn interned(statement: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(text) = known.get(statement) {
        return text;
    }
    let text: &'static str = Box::leak(statement.to_owned().into_boxed_str());
    known.insert(text);
    text
}
