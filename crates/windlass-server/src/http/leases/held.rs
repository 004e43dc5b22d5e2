//! What this server handed out: a copy of each leased job, so that its result needs no read. Losing a copy costs one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass::job::{ClaimedJob, Job, LeaseId};
use windlass_core::Timestamp;

/// The most copies kept; beyond it the store is asked.
const MAX_COPIES: usize = 20_000;
/// The most worker names remembered.
const MAX_WORKERS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Leased {
    jobs: Mutex<HashMap<LeaseId, ClaimedJob>>,
    reported: Mutex<HashMap<String, Timestamp>>,
    share: AtomicUsize,
}

impl Leased {
    pub(super) fn keep(&self, jobs: &[ClaimedJob]) {
        let mut kept = lock(&self.jobs);
        if kept.len() + jobs.len() > MAX_COPIES {
            kept.clear();
        }
        for job in jobs {
            // A decision needs neither payload nor call.
            let light = Job { payload: "null".into(), http: None, ..job.job.clone() };
            kept.insert(job.lease, ClaimedJob { job: light, lease: job.lease });
        }
    }

    pub(super) fn find(&self, lease: LeaseId) -> Option<ClaimedJob> {
        lock(&self.jobs).get(&lease).cloned()
    }

    pub(super) fn forget(&self, lease: LeaseId) {
        lock(&self.jobs).remove(&lease);
    }

    /// Where the next claim's turn begins, so that no queue starves another.
    pub(super) fn next_offset(&self, queues: usize) -> usize {
        self.share.fetch_add(1, Ordering::Relaxed) % queues.max(1)
    }

    /// When the worker first called, if it is time to report it.
    pub(super) fn to_report(&self, worker: &str, now: Timestamp, every: windlass_core::Millis) -> bool {
        let mut reported = lock(&self.reported);
        if reported.get(worker).is_some_and(|at| now.since(*at) < every) {
            return false;
        }
        if reported.len() >= MAX_WORKERS {
            reported.clear();
        }
        reported.insert(worker.to_owned(), now);
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
