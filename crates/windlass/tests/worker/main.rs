//! The worker, end to end, in virtual time: the same scenarios on every store.

mod families;
mod handlers;
mod world;
