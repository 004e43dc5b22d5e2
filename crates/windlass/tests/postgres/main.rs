//! What only Postgres has: heap-only claims, the SQL function, views, callers' transactions, cut connections.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod statements;
mod world;
