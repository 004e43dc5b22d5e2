//! The real binary under torture: killed, cut off from its database, out of disk, restarted in turn, meddled with. What was
//! acknowledged and what started is recorded out here and compared with what the store holds in the end. `cargo test` runs it
//! short; `scripts/torture` runs it long. Postgres comes from `WINDLASS_TEST_POSTGRES`; without it those tests fail.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod check;
mod checked_operators;
#[allow(dead_code)] // Shared with `server`, which uses more of it.
#[path = "../server/client.rs"]
mod client;
mod cluster;
mod disk;
mod fleet;
mod herd;
mod history;
mod integrity;
mod kills;
mod load;
mod node;
mod operators;
mod outage;
mod place;
mod producer;
#[allow(dead_code)] // Shared with the library's tests of Postgres.
#[path = "../../../windlass/tests/postgres/proxy.rs"]
mod proxy;
mod receiver;
mod rolling;
mod spec;
mod stored;
mod tools;
mod worker;
mod world;
