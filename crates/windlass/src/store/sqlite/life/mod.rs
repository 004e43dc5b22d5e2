//! The life of a job: stored, claimed, committed, changed by operators.

pub(super) mod bulk;
pub(super) mod callers;
pub(super) mod claim;
pub(super) mod commit;
pub(super) mod enqueue;
pub(super) mod finish;
pub(super) mod names;
pub(super) mod operations;
pub(super) mod schedule;
pub(super) mod transition;
pub(super) mod wait;
