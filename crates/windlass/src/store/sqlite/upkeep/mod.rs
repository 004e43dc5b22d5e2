//! What keeps the file small and says whether it is well: fold, prune, health.

pub(super) mod fold;
pub(super) mod health;
pub(super) mod prune;
pub(super) mod retention;
