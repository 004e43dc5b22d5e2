//! Connections: accept, limit and guard them.

pub(super) mod connections;
pub(super) mod guard;
pub(super) mod layers;
pub(crate) mod listen;
mod wire;
