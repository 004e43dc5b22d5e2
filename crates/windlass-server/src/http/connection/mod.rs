//! Connections: accept, limit and guard them.

pub(super) mod connections;
pub(crate) mod guard;
pub(super) mod layers;
pub(crate) mod listen;
mod wire;
