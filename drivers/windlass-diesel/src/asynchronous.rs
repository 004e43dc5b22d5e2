//! Transactions of diesel-async on Postgres.

use crate::Diesel;
use crate::statement::{Read, fault, query};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use futures_util::future::BoxFuture;
use windlass::driver::{self, Driver, DriverError, Parameter, Row};
use windlass::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError};

impl<'t> EnqueueIn<Diesel> for &'t mut AsyncPgConnection {
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

impl<'t> CompleteIn<Diesel> for &'t mut AsyncPgConnection {
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

struct Through<'t>(&'t mut AsyncPgConnection);

impl Driver for Through<'_> {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>> {
        Box::pin(async move {
            let rows = query(statement, parameters)?.load::<Read>(&mut *self.0).await.map_err(fault)?;
            Ok(rows.into_iter().map(|row| row.0).collect())
        })
    }
}
