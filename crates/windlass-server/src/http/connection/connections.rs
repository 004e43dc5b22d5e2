//! Connection slots: a bounded number. When all are taken, the connection that makes the least progress gives up its slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass::Clock;

/// A connection without progress for this long may be closed when another needs its slot.
const SILENCE_MS: u64 = 1000;
/// How often to look again while all slots are taken by connections that make progress.
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
    address: IpAddr,
    /// Requests whose handler is at work.
    working: AtomicUsize,
    /// Those of them that only wait for something to happen: long polls.
    waiting: AtomicUsize,
    /// Responses that the client has not taken yet.
    sending: AtomicUsize,
    /// Those of them that the server has nothing more for at present: event streams.
    idle: AtomicUsize,
    /// Monotonic milliseconds of the last progress: its start, a request, a part of a response.
    progress_at: AtomicU64,
    has_asked: AtomicBool,
    /// The connection is closed at once.
    evicted: CancellationToken,
    /// Its long polls answer now, and then it is closed.
    retired: CancellationToken,
}

/// How a connection gives up its slot, the cheapest for its client first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Never sent a complete request.
    NeverAsked,
    /// Nothing is under way.
    Silent,
    /// Its client does not take the response.
    Stalled,
    /// It waits for something to happen: it can be answered early.
    Waiting,
    /// It follows events, and there are none: its client can follow them again.
    Following,
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

/// A request whose handler is at work.
#[derive(Debug)]
pub(crate) struct Working(ConnectionSlot);

/// A response on its way to the client.
#[derive(Debug)]
pub(crate) struct Sending {
    slot: ConnectionSlot,
    is_idle: bool,
}

/// A handler that waits for something to happen.
#[derive(Debug)]
pub(crate) struct Waiting(ConnectionSlot);

impl ConnectionSlots {
    pub(crate) fn new(clock: Clock, max: usize) -> Self {
        Self { clock, max: max.max(1), taken: Mutex::default(), next: AtomicU64::new(0), freed: Notify::new() }
    }

    /// Waits for a free slot, and makes one free if it can.
    pub(crate) async fn take(self: &Arc<Self>, address: IpAddr) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_take(address) {
                return slot;
            }
            self.free_one();
            // Either says only that it is worth looking again.
            tokio::select! {
                () = self.freed.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn try_take(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let mut taken = self.taken();
        if taken.len() >= self.max {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let occupant = Arc::new(Occupant {
            address,
            working: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            sending: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            progress_at: AtomicU64::new(self.now()),
            has_asked: AtomicBool::new(false),
            evicted: CancellationToken::new(),
            retired: CancellationToken::new(),
        });
        taken.insert(id, occupant.clone());
        Some(ConnectionSlot(Arc::new(Held { id, occupant, slots: self.clone() })))
    }

    /// Closes the connection that loses least by it: of the address with the most connections, the longest without progress.
    fn free_one(&self) {
        let now = self.now();
        let taken = self.taken();
        let mut shares: HashMap<IpAddr, usize> = HashMap::new();
        for occupant in taken.values() {
            *shares.entry(occupant.address).or_default() += 1;
        }
        let candidates = taken.values().filter_map(|occupant| Some((occupant.standing(now)?, occupant)));
        let victim = candidates.min_by_key(|(standing, occupant)| {
            (*standing, Reverse(shares[&occupant.address]), occupant.progress_at.load(Ordering::Acquire))
        });
        match victim {
            Some((Standing::Waiting, occupant)) => occupant.retired.cancel(),
            Some((Standing::NeverAsked | Standing::Silent | Standing::Stalled | Standing::Following, occupant)) => {
                occupant.evicted.cancel();
            }
            None => {}
        }
    }

    fn now(&self) -> u64 {
        self.clock.monotonic().get()
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Occupant>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupant {
    /// How it could give up its slot now; `None` while the server works for it or it makes progress.
    fn standing(&self, now: u64) -> Option<Standing> {
        let load = |count: &AtomicUsize| count.load(Ordering::Acquire);
        if self.evicted.is_cancelled() || self.retired.is_cancelled() {
            return None;
        }
        let is_quiet = now.saturating_sub(self.progress_at.load(Ordering::Acquire)) >= SILENCE_MS;
        let (working, waiting) = (load(&self.working), load(&self.waiting));
        let (sending, idle) = (load(&self.sending), load(&self.idle));
        match (working, sending) {
            _ if !is_quiet => None,
            (0, 0) if !self.has_asked.load(Ordering::Acquire) => Some(Standing::NeverAsked),
            (0, 0) => Some(Standing::Silent),
            (0, sending) if sending > idle => Some(Standing::Stalled),
            (0, _) => Some(Standing::Following),
            (working, _) => (working == waiting).then_some(Standing::Waiting),
        }
    }
}

impl ConnectionSlot {
    /// A request begins; its handler is at work until the guard is dropped.
    pub(crate) fn working(&self) -> Working {
        self.0.occupant.has_asked.store(true, Ordering::Release);
        self.progress();
        self.0.occupant.working.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    /// Bytes are on their way to the client until the guard is dropped.
    pub(super) fn sending(&self) -> Sending {
        self.0.occupant.sending.fetch_add(1, Ordering::AcqRel);
        Sending { slot: self.clone(), is_idle: false }
    }

    /// The handler of a request waits for something to happen until the guard is dropped.
    pub(crate) fn waiting(&self) -> Waiting {
        self.0.occupant.waiting.fetch_add(1, Ordering::AcqRel);
        Waiting(self.clone())
    }

    pub(crate) fn has_asked(&self) -> bool {
        self.0.occupant.has_asked.load(Ordering::Acquire)
    }

    /// Whether a response has made no progress for this long.
    pub(crate) fn is_stalled(&self, limit: Duration) -> bool {
        let occupant = &self.0.occupant;
        let quiet_ms = self.0.slots.now().saturating_sub(occupant.progress_at.load(Ordering::Acquire));
        occupant.sending.load(Ordering::Acquire) > occupant.idle.load(Ordering::Acquire)
            && occupant.working.load(Ordering::Acquire) == 0
            && u128::from(quiet_ms) >= limit.as_millis()
    }

    pub(crate) async fn evicted(&self) {
        self.0.occupant.evicted.cancelled().await;
    }

    /// The connection should end soon: what waits answers now.
    pub(crate) async fn retired(&self) {
        self.0.occupant.retired.cancelled().await;
    }

    pub(crate) fn progress(&self) {
        self.0.occupant.progress_at.store(self.0.slots.now(), Ordering::Release);
    }
}

impl Working {
    /// The handler is done; its response is on its way until the new guard is dropped.
    pub(crate) fn sending(self) -> Sending {
        self.0.sending()
    }
}

impl Sending {
    /// The client took a part of the response.
    pub(crate) fn progress(&mut self) {
        self.slot.progress();
        if std::mem::take(&mut self.is_idle) {
            self.slot.0.occupant.idle.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The client would take more, but there is nothing more to send at present.
    pub(crate) fn idle(&mut self) {
        if !std::mem::replace(&mut self.is_idle, true) {
            self.slot.0.occupant.idle.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Waiting {
    /// Another connection needs the slot: answer now. Never, without a slot.
    pub(crate) async fn is_over(waiting: Option<&Self>) {
        match waiting {
            Some(waiting) => waiting.0.retired().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.progress();
        self.0.0.occupant.working.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.progress();
        self.slot.0.occupant.sending.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.occupant.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.slots.taken().remove(&self.id);
        self.slots.freed.notify_one();
    }
}
