//! Pools that belong to the caller: a store that is opened on one takes its connections from it, whatever the driver.

use super::{Driver, DriverError};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::fmt::Debug;

/// A pool of connections to Postgres; see [`Windlass::builder_on`](crate::Windlass::builder_on).
pub trait Pool: Debug + Send + Sync {
    /// Takes a connection that is in no transaction. Dropping it gives it back.
    fn get(&self) -> BoxFuture<'_, Result<Box<dyn Pooled>, DriverError>>;

    /// Listens to a channel, on a connection kept for this. The stream has an item for each notification and ends with
    /// its connection. `None`, the default, if the driver cannot: workers then poll for jobs of other processes.
    fn listen<'a>(&'a self, _channel: &'a str) -> BoxFuture<'a, Result<Option<BoxStream<'static, ()>>, DriverError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A connection taken from a [`Pool`].
pub trait Pooled: Driver {
    /// Runs statements without parameters and results, separated by semicolons, in one message.
    fn run<'a>(&'a mut self, script: &'a str) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Closes the connection instead of giving it back: a transaction may still be open on it.
    fn close(self: Box<Self>);
}
