//! Reads of jobs, queues and counts.

pub(super) mod depths;
pub(super) mod gates;
pub(super) mod read;
pub(super) mod tallies;
