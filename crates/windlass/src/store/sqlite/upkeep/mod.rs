//! What keeps the file small: fold and prune.

pub(super) mod fold;
pub(super) mod prune;
pub(super) mod retention;
