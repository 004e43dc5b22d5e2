//! Opens a store with options in addition to its URL.

use crate::client::enqueue::retry::{IntoRetry, Retry};
use crate::client::windlass::{OpenError, Windlass};
use crate::clock::Clock;
use crate::random::Random;
use crate::store::{Migrations, Options};
#[cfg(feature = "postgres")]
use crate::transaction::driver::Pool;
#[cfg(feature = "postgres")]
use std::sync::Arc;

/// A store about to be opened; [`Windlass::builder`] makes one.
#[derive(Debug, Clone)]
#[must_use = "a store is opened by `open`"]
pub struct WindlassBuilder {
    place: Place,
    options: Options,
    default_policy: Option<Retry>,
}

/// Where the store is.
#[derive(Debug, Clone)]
enum Place {
    Url(String),
    #[cfg(feature = "postgres")]
    Pool(Arc<dyn Pool>),
}

/// Compiles and runs a guide.
#[cfg(all(doctest, feature = "macros", feature = "metrics"))]
#[doc = include_str!("../../../../docs/guides/coming-from/in-process-queue.md")]
pub struct InProcessGuide;

impl Windlass {
    /// Opens a store by its URL, with options.
    ///
    /// ```
    /// use windlass::Windlass;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), windlass::OpenError> {
    /// let windlass = Windlass::builder("memory:").default_policy("full-jitter").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(url: impl Into<String>) -> WindlassBuilder {
        WindlassBuilder { place: Place::Url(url.into()), options: Options::default(), default_policy: None }
    }

    /// Opens a store on a pool of connections to Postgres that the program already has: one of `deadpool-postgres`
    /// (feature `deadpool`), of sqlx (crate `windlass-sqlx`), or any that implements [`driver::Pool`].
    ///
    /// The store keeps one connection of this pool, one more for each worker, and one for the listener where the pool
    /// can listen. It takes at most [`WindlassBuilder::connections`] others at once, and gives them back. Statements
    /// are not prepared on them, so a store opened by its URL is faster.
    ///
    /// ```no_run
    /// # #[cfg(feature = "deadpool")]
    /// # async fn open(pool: deadpool_postgres::Pool) -> Result<(), windlass::OpenError> {
    /// let windlass = windlass::Windlass::builder_on(pool).connections(4).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`driver::Pool`]: crate::driver::Pool
    #[cfg(feature = "postgres")]
    pub fn builder_on(pool: impl Pool + 'static) -> WindlassBuilder {
        WindlassBuilder { place: Place::Pool(Arc::new(pool)), options: Options::default(), default_policy: None }
    }
}

impl WindlassBuilder {
    /// The default retry policy for jobs that this program enqueues. It applies if neither the builder, the kind, the
    /// queue nor the operator's default in the store sets one. Other programs on the same store do not use it.
    pub fn default_policy(mut self, policy: impl IntoRetry) -> Self {
        self.default_policy = Some(policy.into_retry());
        self
    }

    /// Postgres: the schema that holds the tables; `windlass` by default.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.options.schema = name.into();
        self
    }

    /// Postgres: connections for ordinary statements, 8 by default. The listener and each worker use one more.
    pub fn connections(mut self, connections: usize) -> Self {
        self.options.connections = connections;
        self
    }

    /// Who brings the schema up to date; by default, opening the store does.
    pub fn migrations(mut self, migrations: Migrations) -> Self {
        self.options.migrations = migrations;
        self
    }

    /// The keys that payloads, results, errors and secrets are sealed with in the store. Every program that uses the
    /// store needs them.
    #[cfg(feature = "sealing")]
    pub fn key_ring(mut self, ring: crate::sealing::KeyRing) -> Self {
        self.options.key_ring = ring;
        self
    }

    /// Another clock, which tests move by hand.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.options.clock = clock;
        self
    }

    /// Another source of random numbers, which tests seed.
    pub fn random(mut self, random: Random) -> Self {
        self.options.random = random;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// The URL names no store, this program was built without that store, the store cannot be used, or the default
    /// policy cannot be read.
    pub async fn open(self) -> Result<Windlass, OpenError> {
        let windlass = match self.place {
            Place::Url(url) => Windlass::open_with(&url, self.options).await?,
            #[cfg(feature = "postgres")]
            Place::Pool(pool) => Windlass::open_on(pool, self.options).await?,
        };
        if let Some(policy) = self.default_policy {
            policy.read(&*windlass.catalogue().await?)?;
            windlass.inner().set_default_policy(policy);
        }
        Ok(windlass)
    }
}
