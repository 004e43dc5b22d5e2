//! The machine under a store: disks that are full, syncs that fail, servers that insist on TLS. Each test has a small file system,
//! or a Postgres cluster, of its own; several start this very binary again.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![allow(clippy::unwrap_used)] // All of this is tests.

mod again;
mod cluster;
mod disk_postgres;
mod disk_sqlite;
mod jobs;
mod sync;
mod tls;
mod variables;
