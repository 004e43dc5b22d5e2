//! Upkeep of the file: fold, prune, health, verify.

pub(super) mod fold;
pub(super) mod health;
pub(super) mod prune;
pub(super) mod retention;
pub(super) mod texts;
pub(super) mod transfer;
pub(super) mod verify;
