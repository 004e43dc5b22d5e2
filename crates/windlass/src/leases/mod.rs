//! Leases: what a worker holds, renews, gives back and commits.

pub(crate) mod held;
pub(crate) mod held_leases;
pub(crate) mod reconnect;
pub(crate) mod store_contact;
pub mod text;
pub mod transition;
