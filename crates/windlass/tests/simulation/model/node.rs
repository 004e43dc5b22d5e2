//! A node: a worker's logic as a step model. It claims, starts, finishes, commits and renews as the real one does, but
//! each step is an event of its own, so that anything can happen between any two.

use crate::model::agenda::{Key, Life};
use crate::model::handler::Play;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass::core::{Millis, Outcome, Roll, Timestamp};
use windlass::low_level::job::{ClaimedJob, LeaseId};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{Commit, WorkerId, WorkerLock};
use windlass::testing::{FaultPlan, FaultyStore, StoreContact};

pub struct Node {
    pub life: Life,
    pub is_up: bool,
    pub is_draining: bool,
    pub frozen_until: Millis,
    pub worker: WorkerId,
    pub lock: Option<WorkerLock>,
    pub store_contact: StoreContact,
    pub plan: Arc<FaultPlan>,
    pub store: Arc<FaultyStore>,
    pub held: BTreeMap<Key, Held>,
    /// Attempts whose outcomes are being sent to the store.
    pub sent: Vec<Key>,
    /// The leases that the commit under way ends.
    pub ending: Vec<LeaseId>,
    /// Leases whose jobs are all committed, but whose rows are not deleted yet.
    pub over: Vec<LeaseId>,
    pub is_claiming: bool,
    pub next_fetch: Alarm,
    pub next_renewal: Alarm,
    pub troubles: u32,
    pub share: usize,
}

/// The next time that something regular happens: an earlier plan replaces a later one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alarm {
    at: Option<Millis>,
    number: u32,
}

impl Alarm {
    /// Sets it, unless it is already set for an earlier time. Returns its number.
    pub fn set(&mut self, at: Millis) -> Option<u32> {
        if self.at.is_some_and(|sooner| sooner <= at) {
            return None;
        }
        self.at = Some(at);
        self.number += 1;
        Some(self.number)
    }

    /// Whether this number is the one that was set last.
    pub fn rings(&mut self, number: u32) -> bool {
        let is_it = self.number == number;
        if is_it {
            self.at = None;
        }
        is_it
    }
}

/// A claimed job.
#[derive(Debug)]
pub struct Held {
    pub job: ClaimedJob,
    pub started_at: Option<Timestamp>,
    pub play: Option<Play>,
    pub cancel_requested: bool,
    pub is_asked_to_stop: bool,
    pub done: Option<Done>,
}

#[derive(Debug, Clone)]
pub struct Done {
    pub outcome: Outcome,
    pub at: Timestamp,
    pub roll: Roll,
}

impl Held {
    pub fn new(job: ClaimedJob) -> Self {
        let cancel_requested = job.cancel_requested;
        Self { job, started_at: None, play: None, cancel_requested, is_asked_to_stop: false, done: None }
    }

    pub fn lease(&self) -> LeaseId {
        self.job.lease
    }

    pub fn is_running(&self) -> bool {
        self.started_at.is_some() && self.done.is_none()
    }

    /// The commit of its outcome, by the library's own decision.
    pub fn commit_of(&self, worker: &WorkerId) -> Option<Commit> {
        let done = self.done.clone()?;
        let trace = Trace {
            started_at: self.started_at.or(self.job.claimed_at).unwrap_or(done.at),
            finished_at: done.at,
            worker: worker.to_string(),
            note: None,
            result: None,
        };
        let mut job = self.job.clone();
        job.job.cancel_requested = self.cancel_requested;
        Some(commit_of(&job, &done.outcome, trace, done.roll))
    }
}

impl Node {
    /// The process dies: all it knew is gone.
    pub fn die(&mut self) {
        self.life.epoch += 1;
        self.is_up = false;
        self.is_draining = false;
        self.frozen_until = Millis::ZERO;
        self.lock = None;
        self.store_contact = StoreContact::default();
        self.held.clear();
        self.sent.clear();
        self.ending.clear();
        self.over.clear();
        self.is_claiming = false;
        (self.next_fetch.at, self.next_renewal.at) = (None, None);
        self.troubles = 0;
    }

    pub fn running(&self) -> usize {
        self.held.values().filter(|held| held.is_running()).count()
    }

    pub fn suspects(&self) -> usize {
        self.held.values().filter(|held| held.job.crashes > 0).count()
    }

    pub fn leases(&self) -> Vec<LeaseId> {
        self.held.values().map(Held::lease).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Outcomes to commit now, and the leases that end with them: those whose last jobs are among them and cannot be
    /// sent back because of a cancel.
    pub fn outcomes(&mut self) -> (Vec<Commit>, Vec<LeaseId>) {
        let ready = self.held.iter().filter(|(_, held)| held.done.is_some());
        self.sent = ready.map(|(key, _)| *key).collect();
        let commits: Vec<Commit> = self.sent.iter().filter_map(|key| self.held[key].commit_of(&self.worker)).collect();
        let ends = |lease: &LeaseId| {
            let of_lease = self.held.iter().filter(|(_, held)| held.lease() == *lease);
            let is_whole = of_lease.map(|(key, _)| key).all(|key| self.sent.contains(key));
            is_whole && commits.iter().filter(|c| c.lease == *lease).all(Commit::stands_despite_cancel)
        };
        let ended: Vec<LeaseId> = self.leases().into_iter().filter(ends).chain(self.over.clone()).collect();
        (commits, ended)
    }

    /// Takes out attempts whose outcomes are committed.
    pub fn close(&mut self, key: Key, ended: &[LeaseId]) {
        let Some(held) = self.held.remove(&key) else { return };
        let lease = held.lease();
        let is_last = self.held.values().all(|other| other.lease() != lease);
        if is_last && !ended.contains(&lease) {
            self.over.push(lease);
        }
    }
}
