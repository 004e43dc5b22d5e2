//! Windlass jobs in transactions of `sqlx`, on Postgres (feature `postgres`) and SQLite (feature `sqlite`).
//!
//! With `use windlass_sqlx as _;` in scope, `enqueue_in` and `complete_in` take a transaction of sqlx:
//!
//! ```no_run
//! # #[cfg(feature = "postgres")] mod example {
//! use windlass_sqlx as _;
//!
//! # #[derive(serde::Serialize, serde::Deserialize, windlass::JobKind)] struct Ship { order: i64 }
//! # async fn order(windlass: &windlass::Windlass, pool: &sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let mut transaction = pool.begin().await?;
//! let insert = sqlx::query_scalar("INSERT INTO orders DEFAULT VALUES RETURNING id");
//! let order = insert.fetch_one(&mut *transaction).await?;
//! windlass.enqueue(Ship { order }).enqueue_in(&mut *transaction).await?;
//! transaction.commit().await?;
//! windlass.wake();
//! # Ok(()) }
//! # }
//! ```

#![deny(missing_docs)]

#[cfg(feature = "postgres")]
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use windlass::WindlassBuilder;

/// Compiles the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/transactions/sqlx.md")]
pub struct Guide;

/// Marks this crate's implementations.
#[derive(Debug)]
pub enum Sqlx {}

/// A pool that a store can be opened on.
pub trait Pool {
    /// A builder of a Windlass on this pool.
    ///
    /// Postgres: the store keeps one connection of the pool, one more for each worker and one for the listener. It
    /// takes at most [`WindlassBuilder::connections`] others at once, and gives them back. Statements are not prepared
    /// on them, so a store opened by its URL is faster.
    ///
    /// SQLite: the store opens the file of the pool, because it has one writer of its own. A pool in memory has no
    /// file: opening fails.
    fn windlass(&self) -> WindlassBuilder;
}

#[cfg(feature = "postgres")]
impl Pool for sqlx::PgPool {
    fn windlass(&self) -> WindlassBuilder {
        windlass::Windlass::builder_on(pool::Shared(self.clone()))
    }
}

#[cfg(feature = "sqlite")]
impl Pool for sqlx::SqlitePool {
    fn windlass(&self) -> WindlassBuilder {
        windlass::Windlass::builder(sqlite::url(&self.connect_options()))
    }
}
