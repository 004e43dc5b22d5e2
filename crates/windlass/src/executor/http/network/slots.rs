//! Slots: how many calls may be under way, to one host and in all. A host's entry exists only while a call to it runs
//! or waits, so there are never more entries than callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(in crate::executor::http) struct Slots {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, HostSlots>>,
}

#[derive(Debug)]
struct HostSlots {
    semaphore: Arc<Semaphore>,
    callers: usize,
}

/// The right to make one call; given back when dropped.
#[derive(Debug)]
pub(in crate::executor::http) struct Slot {
    _all: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
    _ticket: Ticket,
}

/// Keeps a host's entry in the map. Dropping the last ticket removes the entry, also when a caller stops waiting.
#[derive(Debug)]
struct Ticket {
    slots: Arc<Slots>,
    host: String,
}

impl Slots {
    pub(in crate::executor::http) fn new(per_host: usize, all: usize) -> Self {
        let bounded = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(bounded(all))),
            per_host: bounded(per_host),
            hosts: Mutex::new(HashMap::new()),
        }
    }

    /// Waits for a slot. The host's slot comes first, so that calls waiting for a busy host do not block calls to other
    /// hosts.
    pub(in crate::executor::http) async fn acquire(self: &Arc<Self>, host: String) -> Result<Slot, AcquireError> {
        let (ticket, host_slots) = self.join(host);
        let host = host_slots.acquire_owned().await?;
        let all = self.all.clone().acquire_owned().await?;
        Ok(Slot { _all: all, _host: host, _ticket: ticket })
    }

    fn join(self: &Arc<Self>, host: String) -> (Ticket, Arc<Semaphore>) {
        let mut hosts = self.by_host();
        let host_slots = hosts
            .entry(host.clone())
            .or_insert_with(|| HostSlots { semaphore: Arc::new(Semaphore::new(self.per_host)), callers: 0 });
        host_slots.callers += 1;
        (Ticket { slots: self.clone(), host }, host_slots.semaphore.clone())
    }

    fn by_host(&self) -> MutexGuard<'_, HashMap<String, HostSlots>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(in crate::executor::http) fn hosts(&self) -> usize {
        self.by_host().len()
    }

    #[cfg(test)]
    pub(in crate::executor::http) fn callers(&self) -> usize {
        self.by_host().values().map(|host_slots| host_slots.callers).sum()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut hosts = self.slots.by_host();
        let Some(host_slots) = hosts.get_mut(&self.host) else { return };
        host_slots.callers -= 1;
        if host_slots.callers == 0 {
            hosts.remove(&self.host);
        }
    }
}
