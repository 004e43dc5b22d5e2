//! The library as a program that embeds it sees it: typed jobs, batches, handlers, middleware.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod batches;
mod handlers;
mod kinds;
mod middleware;
mod policies;
mod transactions;
