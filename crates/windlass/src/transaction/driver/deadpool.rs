//! Pools of `deadpool-postgres`.

use super::{Driver, DriverError, Parameter, Pool, Pooled, Row, Value};
use bytes::BytesMut;
use deadpool_postgres::Object;
use futures_util::future::BoxFuture;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

impl Pool for deadpool_postgres::Pool {
    fn get(&self) -> BoxFuture<'_, Result<Box<dyn Pooled>, DriverError>> {
        Box::pin(async move {
            let object = self.get().await.map_err(|error| unsent(error.to_string()))?;
            Ok(Box::new(Taken(object)) as Box<dyn Pooled>)
        })
    }
}

#[derive(Debug)]
struct Taken(Object);

impl Driver for Taken {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>> {
        Box::pin(async move {
            let raw = parameters.into_iter().map(raw).collect::<Result<Vec<_>, _>>()?;
            let typed: Vec<_> = raw.iter().map(|(value, kind)| (value as &(dyn ToSql + Sync), kind.clone())).collect();
            let rows = self.0.query_typed(statement, &typed).await.map_err(|error| fault(&error))?;
            rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| fault(&error))
        })
    }
}

impl Pooled for Taken {
    fn run<'a>(&'a mut self, script: &'a str) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move { self.0.batch_execute(script).await.map_err(|error| fault(&error)) })
    }

    fn close(self: Box<Self>) {
        drop(Object::take(self.0));
    }
}

/// A value that is encoded already.
#[derive(Debug)]
struct Raw(Option<Vec<u8>>);

fn raw(parameter: Parameter) -> Result<(Raw, Type), DriverError> {
    let kind = Type::from_oid(parameter.oid).ok_or_else(|| unsent(format!("type {} is not known", parameter.oid)))?;
    Ok((Raw(parameter.bytes), kind))
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl FromSql<'_> for Raw {
    fn from_sql(_: &Type, bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(Self(Some(bytes.to_vec())))
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxError> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn read(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let value = |(place, column): (usize, &tokio_postgres::Column)| {
        let Raw(bytes) = row.try_get(place)?;
        Ok(Value { column: column.name().to_owned(), oid: column.type_().oid(), bytes })
    };
    Ok(Row { values: row.columns().iter().enumerate().map(value).collect::<Result<_, _>>()? })
}

fn fault(error: &tokio_postgres::Error) -> DriverError {
    let code = error.code().map(|code| code.code().to_owned());
    let message = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    DriverError { code, message }
}

fn unsent(message: String) -> DriverError {
    DriverError { code: None, message }
}
