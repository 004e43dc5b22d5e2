//! Upkeep of the file: fold, prune, health.

pub(super) mod fold;
pub(super) mod health;
pub(super) mod prune;
pub(super) mod retention;
