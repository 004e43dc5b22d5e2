//! Faults of the machine under a store: full disks, failing syncs, servers that require TLS. Each test has its own
//! small file system or Postgres cluster; several start this binary again.
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
