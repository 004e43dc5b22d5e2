//! Claimed jobs on their way to the request they were claimed for. If the request does not take them, they are given
//! back.

use super::Remote;
use crate::store::Claimed;

#[derive(Debug)]
pub(super) struct Undelivered {
    claimed: Option<Claimed>,
    remote: Remote,
}

impl Undelivered {
    pub(super) fn new(claimed: Claimed, remote: &Remote) -> Self {
        Self { claimed: Some(claimed), remote: remote.clone() }
    }

    /// Hands the jobs to the caller.
    pub(super) fn open(mut self) -> Claimed {
        self.claimed.take().unwrap_or_default()
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        let Some(claimed) = self.claimed.take().filter(|claimed| !claimed.jobs.is_empty()) else { return };
        self.remote.0.background.return_jobs(self.remote.0.windlass.clone(), claimed.jobs);
    }
}
