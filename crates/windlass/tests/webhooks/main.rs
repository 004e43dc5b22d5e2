//! Completion webhooks, dead letters and alerts, end to end: real receivers on loopback, virtual time, every store.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod alerts;
mod deliveries;
mod receivers;
#[allow(dead_code)] // Shared with the executor's own tests, which need more of it.
#[path = "../../src/executor/http/tests/receiver.rs"]
mod receiver;
mod replays;
mod signatures;
mod world;
