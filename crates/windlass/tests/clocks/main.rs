//! Clocks that are set, machines that sleep, processes that disagree about the time: what is due follows the clock, and
//! no live lease ends. On SQLite the machine's clock is set, on Postgres the server's.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]
#![allow(clippy::unwrap_used)] // All of this is tests.

mod both;
mod sharing;
mod world;
