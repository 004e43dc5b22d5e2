//! The life of a job: stored, claimed, committed, changed by operators.

pub(super) mod claim;
mod claim_kinds;
pub(super) mod commit;
pub(super) mod enqueue;
pub(super) mod fence;
pub(super) mod frontier;
pub(super) mod gates;
pub(super) mod keys;
pub(super) mod leases;
pub(super) mod moves;
pub(super) mod names;
pub(super) mod operations;
pub(super) mod schedules;
pub(super) mod transitions;
