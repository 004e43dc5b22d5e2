//! Held leases: which jobs this worker holds under which lease, until their outcomes are committed.

use crate::attempt::Ticket;
use crate::job::LeaseId;
use crate::leases::held::Held;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use windlass_core::{JobId, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct HeldLeases {
    inner: Mutex<Inner>,
    /// Notified when there may be room for another claim.
    pub room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    leases: HashMap<LeaseId, LeaseEntry>,
    open: usize,
    suspects: usize,
    /// When the earliest job that this worker postponed falls due.
    due: Option<Timestamp>,
    /// Leases whose jobs are all committed, but whose rows are not deleted yet.
    over: Vec<LeaseId>,
}

#[derive(Debug, Default)]
struct LeaseEntry {
    open: HashMap<JobId, Arc<Ticket>>,
    /// Reaped: there is nothing left to renew.
    lost: bool,
    /// An outcome could not be committed: the lease must run out, so that the job is reaped.
    abandoned: bool,
}

impl HeldLeases {
    /// Adds the jobs of one claim.
    pub(crate) fn enter(&self, held: &[Held]) {
        let mut inner = self.lock();
        for held in held {
            let ticket = held.ticket();
            let lease = ticket.lease();
            inner.open += 1;
            inner.suspects += usize::from(ticket.job.crashes > 0);
            inner.leases.entry(lease).or_default().open.insert(ticket.job.id, ticket.clone());
        }
    }

    /// Jobs held, not yet committed.
    pub(crate) fn open(&self) -> usize {
        self.lock().open
    }

    /// Held jobs that have lost a worker before.
    pub(crate) fn suspects(&self) -> usize {
        self.lock().suspects
    }

    /// Whether committing `count` more jobs of this lease ends it.
    pub(crate) fn ends_with(&self, lease: LeaseId, count: usize) -> bool {
        self.lock().leases.get(&lease).is_some_and(|entry| !entry.abandoned && entry.open.len() == count)
    }

    /// Removes jobs whose outcomes are committed. `ended` are the leases that the commit deleted.
    pub(crate) fn close<'a>(&self, tickets: impl Iterator<Item = &'a Arc<Ticket>>, ended: &[LeaseId]) {
        let mut inner = self.lock();
        for ticket in tickets {
            inner.close(ticket, ended);
        }
        drop(inner);
        self.room.notify_one();
    }

    /// Records that a job was postponed until `at`: the next claim must not wait longer than that.
    pub(crate) fn note_due(&self, at: Timestamp) {
        let mut inner = self.lock();
        inner.due = Some(inner.due.map_or(at, |due| due.min(at)));
    }

    pub(crate) fn take_due(&self) -> Option<Timestamp> {
        self.lock().due.take()
    }

    /// Removes a job whose outcome cannot be committed.
    pub(crate) fn abandon(&self, ticket: &Arc<Ticket>) {
        let mut inner = self.lock();
        if let Some(entry) = inner.leases.get_mut(&ticket.lease()) {
            entry.abandoned = true;
        }
        inner.close(ticket, &[]);
    }

    /// Lease rows that can be deleted.
    pub(crate) fn take_over(&self) -> Vec<LeaseId> {
        std::mem::take(&mut self.lock().over)
    }

    pub(crate) fn give_back_over(&self, leases: Vec<LeaseId>) {
        self.lock().over.extend(leases);
    }

    /// Leases to renew.
    pub(crate) fn leases(&self) -> Vec<LeaseId> {
        let inner = self.lock();
        inner.leases.iter().filter(|(_, entry)| !entry.lost).map(|(lease, _)| *lease).collect()
    }

    /// Leases with an attempt that began before `since`.
    pub(crate) fn leases_before(&self, since: Timestamp) -> Vec<LeaseId> {
        let began = |ticket: &Arc<Ticket>| ticket.started_at().is_some_and(|at| at <= since);
        let inner = self.lock();
        let long = inner.leases.iter().filter(|(_, entry)| !entry.lost && entry.open.values().any(began));
        long.map(|(lease, _)| *lease).collect()
    }

    /// Marks a reaped lease as lost: other workers may run its jobs now. Asks their handlers to stop and returns how
    /// many there were.
    pub(crate) fn lose(&self, lease: LeaseId) -> usize {
        let mut inner = self.lock();
        let Some(entry) = inner.leases.get_mut(&lease) else { return 0 };
        entry.lost = true;
        let tickets: Vec<Arc<Ticket>> = entry.open.values().cloned().collect();
        drop(inner);
        for ticket in &tickets {
            ticket.stop().cancel();
        }
        tickets.len()
    }

    /// Asks the handlers of these jobs, if they run here, to stop because a cancel was requested.
    pub(crate) fn request_cancel(&self, ids: &[JobId]) {
        let inner = self.lock();
        let tickets = ids.iter().flat_map(|id| inner.leases.values().filter_map(|entry| entry.open.get(id)));
        let tickets: Vec<Arc<Ticket>> = tickets.cloned().collect();
        drop(inner);
        for ticket in tickets {
            ticket.request_cancel();
        }
    }

    /// Asks every handler to stop.
    pub(crate) fn stop_all(&self) {
        let inner = self.lock();
        let tickets: Vec<Arc<Ticket>> = inner.leases.values().flat_map(|entry| entry.open.values()).cloned().collect();
        drop(inner);
        for ticket in tickets {
            ticket.stop().cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn close(&mut self, ticket: &Arc<Ticket>, ended: &[LeaseId]) {
        let lease = ticket.lease();
        let Some(entry) = self.leases.get_mut(&lease) else { return };
        if entry.open.remove(&ticket.job.id).is_none() {
            return;
        }
        self.open -= 1;
        self.suspects -= usize::from(ticket.job.crashes > 0);
        if entry.open.is_empty() {
            let abandoned = entry.abandoned;
            self.leases.remove(&lease);
            if !abandoned && !ended.contains(&lease) {
                self.over.push(lease);
            }
        }
    }
}
