//! The command line as people see it: the real binary on real stores and a real server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod demo;
mod looks;
mod refusals;
mod servers;
mod stores;
mod world;
