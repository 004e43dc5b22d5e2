//! Windlass jobs in transactions of `diesel`, on Postgres (feature `postgres`) and SQLite (feature `sqlite`), and of
//! `diesel-async` on Postgres (feature `async`).
//!
//! With `use windlass_diesel as _;` in scope, `enqueue_in` and `complete_in` take a connection of diesel that is in a
//! transaction. Those of plain diesel block, as its queries do; in async code call them in
//! `tokio::task::spawn_blocking`.
//!
//! ```no_run
//! # #[cfg(feature = "postgres")] mod example {
//! use diesel::prelude::*;
//! use windlass_diesel as _;
//!
//! # #[derive(serde::Serialize, serde::Deserialize, windlass::JobKind)] struct Ship { order: i64 }
//! # type Error = Box<dyn std::error::Error>;
//! # fn order(windlass: &windlass::Windlass, connection: &mut PgConnection) -> Result<(), Error> {
//! connection.transaction(|connection| {
//!     diesel::sql_query("INSERT INTO orders (id) VALUES (7)").execute(connection)?;
//!     windlass.enqueue(Ship { order: 7 }).enqueue_in(connection)?;
//!     Ok::<_, Error>(())
//! })?;
//! windlass.wake();
//! # Ok(()) }
//! # }
//! ```

#![deny(missing_docs)]

#[cfg(feature = "async")]
mod asynchronous;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "async"))]
mod statement;

/// Compiles the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/transactions/diesel.md")]
pub struct Guide;

/// Marks this crate's implementations.
#[derive(Debug)]
pub enum Diesel {}
