//! Completion webhooks, dead letters and alerts, end to end: real receivers on loopback, virtual time, every store.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod alerts;
mod deliveries;
#[cfg(feature = "postgres")]
mod postgres;
#[allow(dead_code)] // Shared with the executor's own tests, which need more of it.
#[path = "../../src/executor/http/tests/receiver.rs"]
mod receiver;
mod receivers;
mod replays;
mod signatures;
mod traces;
mod world;
