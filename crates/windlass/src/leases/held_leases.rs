//! The book of leases: which jobs this worker holds under which lease, until their outcomes are committed.

use crate::attempt::Ticket;
use crate::job::LeaseId;
use crate::leases::held::Held;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use windlass_core::{JobId, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct HeldLeases {
    pages: Mutex<Pages>,
    /// Told when there may be room for another claim.
    pub room: Notify,
}

#[derive(Debug, Default)]
struct Pages {
    leases: HashMap<LeaseId, Page>,
    open: usize,
    suspects: usize,
    /// When the earliest of the jobs that this worker sent to wait falls due.
    due: Option<Timestamp>,
    /// Leases whose jobs are all committed, but whose rows are still to be deleted.
    over: Vec<LeaseId>,
}

#[derive(Debug, Default)]
struct Page {
    open: HashMap<JobId, Arc<Ticket>>,
    /// Reaped: there is nothing left to renew.
    lost: bool,
    /// An outcome could not be committed: the lease must run out, so that the job is found.
    abandoned: bool,
}

impl HeldLeases {
    /// Enters the jobs of one claim.
    pub(crate) fn enter(&self, held: &[Held]) {
        let mut pages = self.lock();
        for held in held {
            let ticket = held.ticket();
            let lease = ticket.lease();
            pages.open += 1;
            pages.suspects += usize::from(ticket.job.crashes > 0);
            pages.leases.entry(lease).or_default().open.insert(ticket.job.id, ticket.clone());
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
        self.lock().leases.get(&lease).is_some_and(|page| !page.abandoned && page.open.len() == count)
    }

    /// Takes out jobs whose outcomes are committed. `ended` are the leases that the commit deleted.
    pub(crate) fn close<'a>(&self, tickets: impl Iterator<Item = &'a Arc<Ticket>>, ended: &[LeaseId]) {
        let mut pages = self.lock();
        for ticket in tickets {
            pages.close(ticket, ended);
        }
        drop(pages);
        self.room.notify_one();
    }

    /// A job was sent to wait until then: whoever claims next must not sleep past it.
    pub(crate) fn note_due(&self, at: Timestamp) {
        let mut pages = self.lock();
        pages.due = Some(pages.due.map_or(at, |due| due.min(at)));
    }

    pub(crate) fn take_due(&self) -> Option<Timestamp> {
        self.lock().due.take()
    }

    /// Takes out a job whose outcome cannot be committed.
    pub(crate) fn abandon(&self, ticket: &Arc<Ticket>) {
        let mut pages = self.lock();
        if let Some(page) = pages.leases.get_mut(&ticket.lease()) {
            page.abandoned = true;
        }
        pages.close(ticket, &[]);
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
        let pages = self.lock();
        pages.leases.iter().filter(|(_, page)| !page.lost).map(|(lease, _)| *lease).collect()
    }

    /// The lease was reaped: its jobs are somebody else's. Tells their handlers to stop; answers how many there were.
    pub(crate) fn lose(&self, lease: LeaseId) -> usize {
        let mut pages = self.lock();
        let Some(page) = pages.leases.get_mut(&lease) else { return 0 };
        page.lost = true;
        let tickets: Vec<Arc<Ticket>> = page.open.values().cloned().collect();
        drop(pages);
        for ticket in &tickets {
            ticket.stop.cancel();
        }
        tickets.len()
    }

    /// Tells the handlers of these jobs, if they run here, that somebody wants their end.
    pub(crate) fn request_cancel(&self, ids: &[JobId]) {
        let pages = self.lock();
        let tickets = ids.iter().flat_map(|id| pages.leases.values().filter_map(|page| page.open.get(id)));
        let tickets: Vec<Arc<Ticket>> = tickets.cloned().collect();
        drop(pages);
        for ticket in tickets {
            ticket.request_cancel();
        }
    }

    /// Tells every handler to stop.
    pub(crate) fn stop_all(&self) {
        let pages = self.lock();
        let tickets: Vec<Arc<Ticket>> = pages.leases.values().flat_map(|page| page.open.values()).cloned().collect();
        drop(pages);
        for ticket in tickets {
            ticket.stop.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn close(&mut self, ticket: &Arc<Ticket>, ended: &[LeaseId]) {
        let lease = ticket.lease();
        let Some(page) = self.leases.get_mut(&lease) else { return };
        if page.open.remove(&ticket.job.id).is_none() {
            return;
        }
        self.open -= 1;
        self.suspects -= usize::from(ticket.job.crashes > 0);
        if page.open.is_empty() {
            let abandoned = page.abandoned;
            self.leases.remove(&lease);
            if !abandoned && !ended.contains(&lease) {
                self.over.push(lease);
            }
        }
    }
}
