//! The life of a job: enqueued, claimed, committed, changed by operators. Each step is a function of the transaction it
//! runs in.

pub(super) mod bulk;
pub(super) mod callers;
pub(super) mod claim;
pub(super) mod commit;
pub(super) mod enqueue;
pub(super) mod expire;
pub(super) mod finish;
pub(super) mod gate_rows;
pub(super) mod gates;
pub(super) mod leases;
pub(super) mod operations;
pub(super) mod schedule;
pub(super) mod wait;
