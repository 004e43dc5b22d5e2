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
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use windlass::{Windlass, WindlassBuilder};

/// Compiles the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/transactions/sqlx.md")]
pub struct Guide;

/// Marks this crate's implementations.
#[derive(Debug)]
pub enum Sqlx {}

/// A pool whose database a store can be opened on.
pub trait Pool {
    /// A builder of a Windlass on the database of this pool. The store has connections of its own, because it needs
    /// what sqlx does not offer: statements sent without waiting for each other, and the notices of each commit. Set
    /// how many with [`WindlassBuilder::connections`].
    fn windlass(&self) -> WindlassBuilder;
}

#[cfg(feature = "postgres")]
impl Pool for sqlx::PgPool {
    fn windlass(&self) -> WindlassBuilder {
        use sqlx::ConnectOptions as _;
        Windlass::builder(postgres::url(self.connect_options().to_url_lossy().as_str()))
    }
}

#[cfg(feature = "sqlite")]
impl Pool for sqlx::SqlitePool {
    fn windlass(&self) -> WindlassBuilder {
        Windlass::builder(format!("sqlite:{}", self.connect_options().get_filename().display()))
    }
}
