//! The limits of everything that holds leases. In-process and remote workers share them.

use windlass_core::Millis;

/// The most jobs of one claim.
pub(crate) const MAX_CLAIM: u32 = 2000;
/// The most outcomes in one commit.
pub(crate) const MAX_COMMIT: usize = 2000;
/// How many jobs that lost a worker before one worker runs at a time. A job that kills its process must affect few
/// others.
pub(crate) const MAX_SUSPECTS: u32 = 1;
/// A failed renewal is tried again after a quarter of the renewal interval, and after this at the latest.
pub(crate) const RENEW_AGAIN: Millis = Millis::from_secs(1);
/// An unreachable store is asked again after this time, then after twice as long, and so on …
pub(crate) const FIRST_PAUSE: Millis = Millis::new(50);
/// … but after this at the latest.
pub(crate) const LONGEST_PAUSE: Millis = Millis::from_secs(2);

/// The most jobs a remote worker takes or reports at once.
pub const MAX_ITEMS: usize = 1000;
/// The longest a remote worker may wait for work in one request.
pub const MAX_WAIT: Millis = Millis::from_secs(60);
/// The shortest lease a remote worker may ask for.
pub const MIN_LEASE: Millis = Millis::from_secs(1);
/// The longest lease a remote worker may ask for.
pub const MAX_LEASE: Millis = Millis::from_secs(12 * 3600);
/// How often a remote worker is reported to the store.
pub(crate) const REPORT_EVERY: Millis = Millis::from_secs(10);
/// The most copies of jobs handed to remote workers; beyond it the store is asked.
pub(crate) const MAX_COPIES: usize = 20_000;
/// The most names of remote workers that are remembered as reported.
pub(crate) const MAX_NAMES: usize = 10_000;
/// The most background tasks of remote workers: claims under way, claims in doubt and jobs being given back.
pub(crate) const MAX_TASKS: usize = 10_000;
