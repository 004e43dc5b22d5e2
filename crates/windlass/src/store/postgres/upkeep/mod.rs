//! Upkeep of the tables: expire, fold, prune.

pub(super) mod expire;
pub(super) mod fold;
pub(super) mod prune;
pub(super) mod retention;
