//! Slots: how many calls may be under way, to one host and in all. A host's lane exists only while somebody calls
//! it or waits for it, so there are never more lanes than callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(super) struct Slots {
    all: Arc<Semaphore>,
    per_host: usize,
    lanes: Mutex<HashMap<String, Lane>>,
}

#[derive(Debug)]
struct Lane {
    semaphore: Arc<Semaphore>,
    callers: usize,
}

/// The right to make one call; given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    _all: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
    _ticket: Ticket,
}

/// Keeps a host's lane in the map; dropped, also by a caller that stops waiting, it takes the lane out with the last.
#[derive(Debug)]
struct Ticket {
    slots: Arc<Slots>,
    host: String,
}

impl Slots {
    pub(super) fn new(per_host: usize, all: usize) -> Self {
        let bounded = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(bounded(all))),
            per_host: bounded(per_host),
            lanes: Mutex::new(HashMap::new()),
        }
    }

    /// Waits for a slot. The host's comes first: who waits for a busy host takes nothing away from the others.
    pub(super) async fn acquire(self: &Arc<Self>, host: String) -> Result<Slot, AcquireError> {
        let (ticket, lane) = self.join(host);
        let host = lane.acquire_owned().await?;
        let all = self.all.clone().acquire_owned().await?;
        Ok(Slot { _all: all, _host: host, _ticket: ticket })
    }

    fn join(self: &Arc<Self>, host: String) -> (Ticket, Arc<Semaphore>) {
        let mut lanes = self.lanes();
        let lane = lanes
            .entry(host.clone())
            .or_insert_with(|| Lane { semaphore: Arc::new(Semaphore::new(self.per_host)), callers: 0 });
        lane.callers += 1;
        (Ticket { slots: self.clone(), host }, lane.semaphore.clone())
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn hosts(&self) -> usize {
        self.lanes().len()
    }

    #[cfg(test)]
    pub(super) fn callers(&self) -> usize {
        self.lanes().values().map(|lane| lane.callers).sum()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut lanes = self.slots.lanes();
        let Some(lane) = lanes.get_mut(&self.host) else { return };
        lane.callers -= 1;
        if lane.callers == 0 {
            lanes.remove(&self.host);
        }
    }
}
