//! Transactions on Postgres: Windlass's statements are sent through diesel. They block.

use crate::Diesel;
use crate::statement::{Read, fault, query};
use diesel::{PgConnection, RunQueryDsl as _};
use futures_util::future::{BoxFuture, ready};
use windlass::driver::{self, Driver, DriverError, Parameter, Row};
use windlass::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, TransactionError};

impl<'t> EnqueueIn<Diesel> for &'t mut PgConnection {
    type Stored<'w>
        = Result<JobId, TransactionError>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        driver::enqueue_blocking(job, &mut Through(self))
    }
}

impl<'t> CompleteIn<Diesel> for &'t mut PgConnection {
    type Completed<'w>
        = Result<(), TransactionError>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        driver::complete_blocking(attempt, &mut Through(self))
    }
}

struct Through<'t>(&'t mut PgConnection);

impl Driver for Through<'_> {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>> {
        let rows = query(statement, parameters).and_then(|query| query.load::<Read>(self.0).map_err(fault));
        Box::pin(ready(rows.map(|rows| rows.into_iter().map(|row| row.0).collect())))
    }
}
