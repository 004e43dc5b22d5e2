//! Power cuts: what the binary wrote and synced, in order, and the disks that a cut could leave.

pub mod disk;
pub mod recorder;
