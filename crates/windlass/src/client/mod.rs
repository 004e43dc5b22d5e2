//! The client: the only door. Enqueue, look at jobs, operate them.

pub mod catalogue;
pub(crate) mod dead_letters;
pub mod draft;
pub mod enqueue;
pub(crate) mod operations;
pub(crate) mod windlass;
