//! The protocol, on a store in memory.

mod commands;
mod jobs;
mod operations;
mod outage;
mod world;
