//! What only Postgres has: jobs written once, the SQL function and views, callers' transactions, cut connections.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)] // A test may panic.

mod faults;
mod hot;
mod locks;
mod plans;
mod pooler;
mod proxy;
mod prune;
mod schema;
#[cfg(feature = "deadpool")]
mod shared_pool;
mod silence;
mod sql_function;
mod tallies;
mod transactions;
mod vacuum;
mod world;
