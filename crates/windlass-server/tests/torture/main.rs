//! The real binary under stress: it is killed, cut off from its database, out of disk space, restarted one node after
//! another, and disturbed by operators. The tests record acknowledged jobs and started attempts outside the nodes, and
//! compare them with the stored data at the end. `cargo test` runs a short version; `scripts/torture` runs a long one.
//! Postgres comes from `WINDLASS_TEST_POSTGRES`; without it those tests fail.
#![allow(clippy::unwrap_used)] // All of this is test code.

mod checks;
#[allow(dead_code)] // Shared with `server`, which uses more of it.
#[path = "../server/client.rs"]
mod client;
mod power;
#[allow(dead_code)] // Shared with the library's tests of Postgres.
#[path = "../../../windlass/tests/postgres/proxy.rs"]
mod proxy;
mod setup;
mod tools;
mod tortures;
mod work;
mod world;
