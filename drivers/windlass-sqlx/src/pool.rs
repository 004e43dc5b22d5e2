//! A store on a pool of sqlx.

use crate::postgres::{fault, interned, query};
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgListener, Postgres};
use sqlx::{Executor as _, PgPool};
use windlass::driver::{Driver, DriverError, Parameter, Pool, Pooled, Row};

#[derive(Debug)]
pub(crate) struct Shared(pub(crate) PgPool);

impl Pool for Shared {
    fn get(&self) -> BoxFuture<'_, Result<Box<dyn Pooled>, DriverError>> {
        Box::pin(async move {
            let connection = self.0.acquire().await.map_err(|error| fault(&error))?;
            Ok(Box::new(Taken(connection)) as Box<dyn Pooled>)
        })
    }

    fn listen<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, Result<Option<BoxStream<'static, ()>>, DriverError>> {
        Box::pin(async move {
            let mut listener = PgListener::connect_with(&self.0).await.map_err(|error| fault(&error))?;
            listener.listen(channel).await.map_err(|error| fault(&error))?;
            // Ends at the first error; the store then listens again.
            let notifications = listener.into_stream().take_while(|item| std::future::ready(item.is_ok()));
            Ok(Some(notifications.map(drop).boxed()))
        })
    }
}

struct Taken(PoolConnection<Postgres>);

impl Driver for Taken {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        parameters: Vec<Parameter>,
    ) -> BoxFuture<'a, Result<Vec<Row>, DriverError>> {
        Box::pin(query(&mut self.0, statement, parameters))
    }
}

impl Pooled for Taken {
    fn run<'a>(&'a mut self, script: &'a str) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let script = sqlx::raw_sql(interned(script));
            // By the trait: sqlx 0.8 does not accept `script.execute(…)` in a boxed future.
            (&mut *self.0).execute(script).await.map(drop).map_err(|error| fault(&error))
        })
    }

    fn close(self: Box<Self>) {
        drop(self.0.detach());
    }
}
