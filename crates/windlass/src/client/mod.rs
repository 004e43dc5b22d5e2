//! The client: the library's only entry point. Enqueue, read and manage jobs; each part is a small handle that borrows
//! [`Windlass`].
//!
//! [`Windlass`]: windlass::Windlass

pub(crate) mod batch;
pub mod catalogue;
pub mod dead_letters;
pub mod draft;
pub mod enqueue;
pub mod fleet;
pub mod jobs;
pub(crate) mod open;
pub mod policies;
pub mod queues;
pub(crate) mod retry;
pub mod schedules;
pub mod stats;
pub(crate) mod windlass;
