//! What keeps the tables small: reap, expire, fold, prune.

pub(super) mod fold;
pub(super) mod partitions;
pub(super) mod prune;
pub(super) mod reap;
pub(super) mod retention;
