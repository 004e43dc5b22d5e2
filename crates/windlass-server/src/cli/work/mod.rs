//! Commands about jobs.

pub(super) mod dead;
pub(super) mod deliveries;
pub(super) mod enqueue;
pub(super) mod history;
pub(super) mod job_flags;
pub(super) mod jobs;
pub(super) mod tail;
pub(super) mod why;
