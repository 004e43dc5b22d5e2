//! The worker, end to end, in virtual time: the same scenarios on every store.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod fairness;
mod families;
mod faults;
mod handlers;
mod limits;
mod lines;
mod pace;
mod remote;
mod slots;
mod stopping;
mod world;
