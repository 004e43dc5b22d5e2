//! Compares the acknowledged jobs and started attempts, recorded outside, with the stored data at the end.

pub mod check;
pub mod checked_operators;
pub mod history;
pub mod integrity;
pub mod leases;
pub mod stored;
