//! The client: the only door. Enqueue, look at jobs, operate them; each part is a small handle that borrows [`Windlass`].
//!
//! [`Windlass`]: windlass::Windlass

pub mod catalogue;
pub mod dead_letters;
pub mod draft;
pub mod enqueue;
pub mod fleet;
pub mod jobs;
pub mod policies;
pub mod queues;
pub mod schedules;
pub mod stats;
pub(crate) mod windlass;
