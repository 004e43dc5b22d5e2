//! ConnectionSlots for connections: a bounded number. When all are taken, whoever has been silent longest gives up theirs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass::clock::Clock;

/// A connection silent for this long may be closed when another wants its slot.
const SILENCE_MS: u64 = 1000;
/// How often to look again while all slots are taken by connections that are not silent.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// All slots.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    clock: Clock,
    max: usize,
    taken: Mutex<BTreeMap<u64, Arc<Occupant>>>,
    next: AtomicU64,
    freed: Notify,
}

#[derive(Debug)]
struct Occupant {
    /// Requests under way.
    busy: AtomicUsize,
    /// Monotonic milliseconds of the last sign of life: its start, or the end of a request.
    seen_at: AtomicU64,
    asked: AtomicBool,
    evicted: CancellationToken,
}

/// One connection's slot, given back when its last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlot(Arc<Held>);

#[derive(Debug)]
struct Held {
    id: u64,
    occupant: Arc<Occupant>,
    slots: Arc<ConnectionSlots>,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Busy(ConnectionSlot);

impl ConnectionSlots {
    pub(crate) fn new(clock: Clock, max: usize) -> Self {
        Self { clock, max: max.max(1), taken: Mutex::default(), next: AtomicU64::new(0), freed: Notify::new() }
    }

    /// Waits for a free slot, closing the connection that has been silent longest if need be.
    pub(crate) async fn take(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            self.evict_one();
            // Either says only that it is worth looking again.
            tokio::select! {
                () = self.freed.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut taken = self.taken();
        if taken.len() >= self.max {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let occupant = Arc::new(Occupant {
            busy: AtomicUsize::new(0),
            seen_at: AtomicU64::new(self.clock.monotonic().get()),
            asked: AtomicBool::new(false),
            evicted: CancellationToken::new(),
        });
        taken.insert(id, occupant.clone());
        Some(ConnectionSlot(Arc::new(Held { id, occupant, slots: self.clone() })))
    }

    fn evict_one(&self) {
        let now = self.clock.monotonic().get();
        let taken = self.taken();
        let silent = taken.values().filter(|o| o.busy.load(Ordering::Acquire) == 0 && !o.evicted.is_cancelled());
        // Those that never asked for anything go first.
        let longest = silent.min_by_key(|o| (o.asked.load(Ordering::Acquire), o.seen_at.load(Ordering::Acquire)));
        if let Some(occupant) = longest
            && now.saturating_sub(occupant.seen_at.load(Ordering::Acquire)) >= SILENCE_MS
        {
            occupant.evicted.cancel();
        }
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Occupant>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// A request begins; it ends when the guard is dropped.
    pub(crate) fn busy(&self) -> Busy {
        self.0.occupant.asked.store(true, Ordering::Release);
        self.0.occupant.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self.clone())
    }

    pub(crate) fn has_asked(&self) -> bool {
        self.0.occupant.asked.load(Ordering::Acquire)
    }

    pub(crate) async fn evicted(&self) {
        self.0.occupant.evicted.cancelled().await;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let held = &self.0.0;
        held.occupant.seen_at.store(held.slots.clock.monotonic().get(), Ordering::Release);
        held.occupant.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.slots.taken().remove(&self.id);
        self.slots.freed.notify_one();
    }
}
