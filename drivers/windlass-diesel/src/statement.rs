//! A statement of Windlass as a query of diesel, and its rows.

use diesel::deserialize::{self, QueryableByName};
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::{DatabaseErrorKind, Error};
use diesel::row::{Field, NamedRow};
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Array, BigInt, Binary, Bool, HasSqlType, Integer, Nullable, SmallInt, Text};
use std::io::Write;
use windlass::driver::{DriverError, Parameter, Row, Value};

/// The query, with its parameters. Diesel never keeps such a query prepared.
pub(crate) fn query<'a>(
    statement: &'a str,
    parameters: Vec<Parameter>,
) -> Result<BoxedSqlQuery<'a, Pg, SqlQuery>, DriverError> {
    let mut query = diesel::sql_query(statement).into_boxed::<Pg>();
    for parameter in parameters {
        let raw = Raw(parameter.bytes);
        query = match parameter.oid {
            16 => query.bind::<Bool, _>(raw),
            17 => query.bind::<Binary, _>(raw),
            20 => query.bind::<BigInt, _>(raw),
            21 => query.bind::<SmallInt, _>(raw),
            23 => query.bind::<Integer, _>(raw),
            25 => query.bind::<Text, _>(raw),
            1000 => query.bind::<Array<Nullable<Bool>>, _>(raw),
            1001 => query.bind::<Array<Nullable<Binary>>, _>(raw),
            1005 => query.bind::<Array<Nullable<SmallInt>>, _>(raw),
            1007 => query.bind::<Array<Nullable<Integer>>, _>(raw),
            1009 => query.bind::<Array<Nullable<Text>>, _>(raw),
            1016 => query.bind::<Array<Nullable<BigInt>>, _>(raw),
            other => {
                return Err(DriverError { code: None, message: format!("parameters of type {other} are not known") });
            }
        };
    }
    Ok(query)
}

/// A parameter that is encoded already.
#[derive(Debug)]
struct Raw(Option<Vec<u8>>);

impl<T> ToSql<T, Pg> for Raw
where
    Pg: HasSqlType<T>,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        Ok(match &self.0 {
            None => IsNull::Yes,
            Some(bytes) => {
                out.write_all(bytes)?;
                IsNull::No
            }
        })
    }
}

/// A row as Windlass wants it.
pub(crate) struct Read(pub(crate) Row);

impl QueryableByName<Pg> for Read {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        let value = |place| {
            let field = diesel::row::Row::get(row, place).ok_or("a row ends before its last column")?;
            let raw: Option<PgValue<'_>> = field.value();
            Ok(Value {
                column: field.field_name().unwrap_or_default().to_owned(),
                oid: raw.as_ref().map_or(0, |value| value.get_oid().get()),
                bytes: raw.map(|value| value.as_bytes().to_vec()),
            })
        };
        let values = (0..row.field_count()).map(value).collect::<deserialize::Result<_>>()?;
        Ok(Self(Row { values }))
    }
}

/// Diesel passes on what kind of error it was, and no SQLSTATE.
#[allow(clippy::needless_pass_by_value)] // For `map_err`.
pub(crate) fn fault(error: Error) -> DriverError {
    let code = match &error {
        Error::DatabaseError(kind, _) => match kind {
            DatabaseErrorKind::UniqueViolation => Some("23505"),
            DatabaseErrorKind::ForeignKeyViolation => Some("23503"),
            DatabaseErrorKind::NotNullViolation => Some("23502"),
            DatabaseErrorKind::CheckViolation => Some("23514"),
            DatabaseErrorKind::SerializationFailure => Some("40001"),
            _ => None,
        },
        _ => None,
    };
    DriverError { code: code.map(str::to_owned), message: error.to_string() }
}
