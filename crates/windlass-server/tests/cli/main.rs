//! The command line as users see it: the real binary on real stores and a real server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod canary;
mod demo;
mod doctor;
mod looks;
mod refusals;
mod servers;
mod start;
mod stats;
mod stores;
mod terminal;
mod terminals;
mod transfer;
mod world;
