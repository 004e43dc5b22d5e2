//! The real binary under torture: killed, cut off from its database, out of disk, restarted in turn, meddled with. What
//! was acknowledged and what started is recorded out here and compared with what the store holds in the end. `cargo
//! test` runs it short; `scripts/torture` runs it long. Postgres comes from `WINDLASS_TEST_POSTGRES`; without it those
//! tests fail.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod checks;
#[allow(dead_code)] // Shared with `server`, which uses more of it.
#[path = "../server/client.rs"]
mod client;
#[allow(dead_code)] // Shared with the library's tests of Postgres.
#[path = "../../../windlass/tests/postgres/proxy.rs"]
mod proxy;
mod setup;
mod tools;
mod tortures;
mod work;
mod world;
