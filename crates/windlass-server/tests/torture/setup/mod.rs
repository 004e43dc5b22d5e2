//! The system under test: nodes of the binary, their store and its location.

pub mod cluster;
pub mod faulty_disk;
pub mod fleet;
pub mod node;
pub mod patroni;
pub mod place;
