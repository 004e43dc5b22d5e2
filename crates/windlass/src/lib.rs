//! Windlass: durable jobs with the best retry engine in the field, inside your process.

pub mod alert;
pub mod catalogue;
pub mod clock;
pub mod dice;
pub mod draft;
pub mod executor;
pub mod fingerprint;
pub mod job;
pub mod settle;
pub mod store;
pub mod tally;
pub mod wake;
pub mod webhook;

pub use windlass_core as core;
