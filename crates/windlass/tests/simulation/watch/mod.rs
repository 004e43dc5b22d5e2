//! The watch: a store that checks every call against a record kept outside of it.

pub mod jobs;
pub mod look;
pub mod operations;
pub mod record;
pub mod rules;
pub mod store;
pub mod upkeep;
