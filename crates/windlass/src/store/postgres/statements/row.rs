//! A row that a statement returned: of our own driver, or of the driver that a caller's transaction belongs to.

use crate::transaction::driver;
use tokio_postgres::types::{FromSql, Type};

#[derive(Debug)]
pub(in crate::store::postgres) enum Row {
    Ours(tokio_postgres::Row),
    Callers(driver::Row),
}

impl Row {
    /// The value at a place.
    pub(in crate::store::postgres) fn at<'a, T: FromSql<'a>>(&'a self, place: usize) -> Result<T, String> {
        match self {
            Self::Ours(row) => row.try_get(place).map_err(|error| error.to_string()),
            Self::Callers(row) => read(row.values.get(place)),
        }
    }

    /// The value of a column, found by comparing names.
    pub(in crate::store::postgres) fn named<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, String> {
        match self {
            Self::Ours(row) => row.try_get(name).map_err(|error| error.to_string()),
            Self::Callers(row) => read(row.values.iter().find(|value| value.column == name)),
        }
    }
}

fn read<'a, T: FromSql<'a>>(value: Option<&'a driver::Value>) -> Result<T, String> {
    let value = value.ok_or("there is no such column")?;
    let Some(bytes) = &value.bytes else {
        return T::from_sql_null(&Type::UNKNOWN).map_err(|error| error.to_string());
    };
    let kind = Type::from_oid(value.oid).ok_or_else(|| format!("type {} is not known", value.oid))?;
    if !T::accepts(&kind) {
        return Err(format!("its type is {kind}"));
    }
    T::from_sql(&kind, bytes).map_err(|error| error.to_string())
}
