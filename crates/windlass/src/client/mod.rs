//! The client: the only door. Enqueue, look at jobs, operate them.

pub(crate) mod batch;
pub mod catalogue;
pub(crate) mod dead_letters;
pub mod draft;
pub mod enqueue;
pub(crate) mod open;
pub(crate) mod operations;
pub(crate) mod retry;
pub(crate) mod windlass;
