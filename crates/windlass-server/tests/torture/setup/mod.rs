//! What is tortured: nodes of the binary, their store and where both live.

pub mod cluster;
pub mod fleet;
pub mod node;
pub mod place;
