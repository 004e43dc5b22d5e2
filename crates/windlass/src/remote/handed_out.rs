//! The jobs this process handed out: a copy of each job under its lease, so that its result needs no read. A missing
//! copy costs one read.

use crate::job::{ClaimedJob, Job, LeaseId};
use crate::leases::limits::{MAX_COPIES, MAX_NAMES, REPORT_EVERY};
use crate::store::WorkerId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;

#[derive(Debug, Default)]
pub(super) struct HandedOut {
    jobs: Mutex<HashMap<LeaseId, ClaimedJob>>,
    /// When each worker was last reported to the store.
    reported: Mutex<HashMap<WorkerId, Millis>>,
}

impl HandedOut {
    pub(super) fn keep(&self, jobs: &[ClaimedJob]) {
        let mut kept = lock(&self.jobs);
        if kept.len() + jobs.len() > MAX_COPIES {
            kept.clear();
        }
        for claimed in jobs {
            // The decision uses neither the payload nor the call.
            let job = Job { payload: "null".into(), http: None, ..claimed.job.clone() };
            kept.insert(claimed.lease, ClaimedJob { job, ..*claimed });
        }
    }

    pub(super) fn find(&self, lease: LeaseId) -> Option<ClaimedJob> {
        lock(&self.jobs).get(&lease).cloned()
    }

    pub(super) fn forget(&self, lease: LeaseId) {
        lock(&self.jobs).remove(&lease);
    }

    /// Whether it is time to report the worker to the store again.
    pub(super) fn is_report_due(&self, worker: &WorkerId, now: Millis) -> bool {
        let mut reported = lock(&self.reported);
        if reported.get(worker).is_some_and(|at| now - *at < REPORT_EVERY) {
            return false;
        }
        if reported.len() >= MAX_NAMES {
            reported.clear();
        }
        reported.insert(worker.clone(), now);
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
