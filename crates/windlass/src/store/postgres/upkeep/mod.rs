//! Upkeep of the tables: expire, fold, prune.

pub(super) mod expire;
pub(super) mod fold;
mod import_rows;
pub(super) mod prune;
pub(super) mod retention;
pub(super) mod texts;
pub(super) mod transfer;
