//! Connection slots, limited in number, in all, for each client address and for each token. When all are in use, the
//! connection with the least progress gives up its slot. When an address or a token has used its share, one of its own
//! connections does.
//! A connection without a slot waits in the lobby: there it gets answers to health checks only, until a slot is free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass::Clock;
use windlass::http::Percent;

/// A connection without progress for this long may be closed when another needs its slot.
const SILENCE_MS: u64 = 1000;
/// How often to check again while all slots are used by connections that make progress.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long a request waits in the lobby for a slot.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The most connections in the lobby, in all and of one address.
const MAX_LOBBY: usize = 256;
const MAX_LOBBY_OF_ADDRESS: usize = 64;
/// The most bytes of responses that clients have not read, in all and of one connection. A single larger response is
/// sent if there is no other.
const MAX_UNREAD: usize = 256 << 20;
const MAX_UNREAD_OF_CONNECTION: usize = 64 << 20;

/// All slots.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    clock: Clock,
    max: usize,
    max_of_address: usize,
    max_of_token: usize,
    places: Mutex<Places>,
    next: AtomicU64,
    freed: Notify,
    unread: AtomicUsize,
}

#[derive(Debug, Default)]
struct Places {
    taken: BTreeMap<u64, Arc<Occupant>>,
    lobby: BTreeMap<u64, Arc<Occupant>>,
}

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    All,
    Address,
}

#[derive(Debug)]
struct Occupant {
    address: IpAddr,
    /// The id of the token that its last request had.
    token: Mutex<Option<Arc<str>>>,
    /// Requests whose handler is running.
    working: AtomicUsize,
    /// The part of them that only waits for an event: long polls.
    waiting: AtomicUsize,
    /// Responses that the client has not read completely.
    sending: AtomicUsize,
    /// The part of them for which the server has nothing to send now: event streams.
    idle: AtomicUsize,
    /// The time of the last progress (the start, a request, a part of a response) in monotonic milliseconds.
    progress_at: AtomicU64,
    has_asked: AtomicBool,
    /// It has a slot, and is not in the lobby.
    is_admitted: AtomicBool,
    /// Bytes of responses that the client has not read.
    unread: AtomicUsize,
    /// The connection is closed at once.
    evicted: CancellationToken,
    /// Its long polls are answered now, and then it is closed.
    retired: CancellationToken,
}

/// How a connection gives up its slot. The way that costs its client least comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It has never sent a complete request.
    NeverAsked,
    /// It has no request in progress.
    Silent,
    /// Its client does not read the response.
    Stalled,
    /// It waits for an event and can be answered early.
    Waiting,
    /// It follows events and there are none now; its client can reconnect.
    Following,
}

/// One connection's slot, freed when its last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlot(Arc<Held>);

#[derive(Debug)]
struct Held {
    id: u64,
    occupant: Arc<Occupant>,
    slots: Arc<ConnectionSlots>,
}

/// A request whose handler is running.
#[derive(Debug)]
pub(crate) struct Working(ConnectionSlot);

/// A response that is being sent to the client.
#[derive(Debug)]
pub(crate) struct Sending {
    slot: ConnectionSlot,
    is_idle: bool,
}

/// Bytes of a response that the client has not read.
#[derive(Debug)]
pub(super) struct Unread {
    slot: ConnectionSlot,
    bytes: usize,
}

/// A handler that waits for an event.
#[derive(Debug)]
pub(crate) struct Waiting(ConnectionSlot);

impl ConnectionSlots {
    pub(crate) fn new(clock: Clock, max: usize, of_address: Percent, of_token: Percent) -> Self {
        let max = max.max(1);
        let part = |share: Percent| share.of(u32::try_from(max).unwrap_or(u32::MAX)) as usize;
        Self {
            clock,
            max,
            max_of_address: part(of_address),
            max_of_token: part(of_token),
            places: Mutex::default(),
            next: AtomicU64::new(0),
            freed: Notify::new(),
            unread: AtomicUsize::new(0),
        }
    }

    /// A place for a new connection: a slot, or one in the lobby. `None` if both are full: it must be closed.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let occupant = Arc::new(Occupant {
            address,
            token: Mutex::default(),
            working: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            sending: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            progress_at: AtomicU64::new(self.now()),
            has_asked: AtomicBool::new(false),
            is_admitted: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
            evicted: CancellationToken::new(),
            retired: CancellationToken::new(),
        });
        let mut places = self.places();
        if self.admit(&mut places, id, &occupant).is_err() {
            let of_address = places.lobby.values().filter(|other| other.address == address).count();
            if of_address >= MAX_LOBBY_OF_ADDRESS {
                places.make_room(Some(address))?;
            } else if places.lobby.len() >= MAX_LOBBY {
                places.make_room(None)?;
            }
            places.lobby.insert(id, occupant.clone());
        }
        drop(places);
        Some(ConnectionSlot(Arc::new(Held { id, occupant, slots: self.clone() })))
    }

    fn admit(&self, places: &mut Places, id: u64, occupant: &Arc<Occupant>) -> Result<(), Full> {
        if places.taken.len() >= self.max {
            return Err(Full::All);
        }
        let of_address = places.taken.values().filter(|other| other.address == occupant.address).count();
        if of_address >= self.max_of_address {
            return Err(Full::Address);
        }
        places.lobby.remove(&id);
        places.taken.insert(id, occupant.clone());
        occupant.is_admitted.store(true, Ordering::Release);
        Ok(())
    }

    /// Closes the connection that loses least: from the address with the most connections (or from this one), the one
    /// that has made no progress for the longest time.
    fn free_one(&self, of: Option<IpAddr>) {
        self.free_among(&self.places(), &|occupant| of.is_none_or(|address| occupant.address == address));
    }

    /// The same among some connections. Returns whether there was one.
    fn free_among(&self, places: &Places, is_meant: &dyn Fn(&Occupant) -> bool) -> bool {
        let now = self.now();
        let taken = &places.taken;
        let mut shares: HashMap<IpAddr, usize> = HashMap::new();
        for occupant in taken.values() {
            *shares.entry(occupant.address).or_default() += 1;
        }
        let candidates = taken.values().filter(|occupant| is_meant(occupant));
        let candidates = candidates.filter_map(|occupant| Some((occupant.standing(now)?, occupant)));
        let victim = candidates.min_by_key(|(standing, occupant)| {
            (*standing, Reverse(shares[&occupant.address]), occupant.progress_at.load(Ordering::Acquire))
        });
        match victim {
            Some((Standing::Waiting, occupant)) => occupant.retired.cancel(),
            Some((Standing::NeverAsked | Standing::Silent | Standing::Stalled | Standing::Following, occupant)) => {
                occupant.evicted.cancel();
            }
            None => return false,
        }
        true
    }

    fn now(&self) -> u64 {
        self.clock.monotonic().get()
    }

    /// Closes the connection that holds the most unread bytes without reading.
    fn free_output(&self) -> bool {
        let now = self.now();
        let places = self.places();
        let stalled = places.taken.values().filter(|occupant| occupant.standing(now) == Some(Standing::Stalled));
        let victim = stalled.max_by_key(|occupant| occupant.unread.load(Ordering::Acquire));
        victim.inspect(|occupant| occupant.evicted.cancel()).is_some()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Closes the connection that has been in the lobby longest without asking for anything, of all or of one address.
    /// `None` if all have asked.
    fn make_room(&mut self, of: Option<IpAddr>) -> Option<()> {
        let is_meant = |other: &Occupant| of.is_none_or(|address| other.address == address);
        let has_asked = |other: &Occupant| other.has_asked.load(Ordering::Acquire);
        let idle = self.lobby.iter().filter(|(_, other)| is_meant(other) && !has_asked(other));
        let (id, longest) = idle.min_by_key(|(id, _)| **id).map(|(id, other)| (*id, other.clone()))?;
        longest.evicted.cancel();
        self.lobby.remove(&id);
        Some(())
    }
}

impl Occupant {
    fn has_token(&self, token: &str) -> bool {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(token)
    }

    /// How it could give up its slot now; `None` while a handler runs for it or it makes progress.
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
    pub(super) fn is_admitted(&self) -> bool {
        self.0.occupant.is_admitted.load(Ordering::Acquire)
    }

    /// Waits for a slot, and frees one if possible. Returns whether it has one.
    pub(super) async fn wait_for_slot(&self) -> bool {
        self.0.occupant.has_asked.store(true, Ordering::Release);
        let over = tokio::time::sleep(LONGEST_WAIT);
        tokio::pin!(over);
        loop {
            if self.is_admitted() {
                return true;
            }
            let Held { id, occupant, slots } = &*self.0;
            let admitted = slots.admit(&mut slots.places(), *id, occupant);
            match admitted {
                Ok(()) => return true,
                Err(Full::All) => slots.free_one(None),
                Err(Full::Address) => slots.free_one(Some(occupant.address)),
            }
            // The first two only mean that it is worth checking again.
            tokio::select! {
                () = slots.freed.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = &mut over => return false,
            }
        }
    }

    /// A request with this token came on the connection. If the token has used its share, its connection with the least
    /// progress gives way. Returns the share if none does: the request is refused.
    pub(crate) fn belong_to(&self, token: &str) -> Result<(), usize> {
        let Held { id, occupant, slots } = &*self.0;
        if occupant.has_token(token) {
            return Ok(());
        }
        let places = slots.places();
        let is_its = |other: &Occupant| other.has_token(token) && !other.evicted.is_cancelled();
        let open = places.taken.iter().filter(|(other, held)| *other != id && is_its(held)).count();
        if open >= slots.max_of_token && !slots.free_among(&places, &is_its) {
            drop(places);
            self.retire();
            return Err(slots.max_of_token);
        }
        *occupant.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.into());
        Ok(())
    }

    /// The connection ends after its current answers.
    pub(super) fn retire(&self) {
        self.0.occupant.retired.cancel();
    }

    /// Counts the bytes of a response until the client has read them. `None` if too many are unread.
    pub(super) fn unread(&self, bytes: usize) -> Option<Unread> {
        let Held { occupant, slots, .. } = &*self.0;
        let own = occupant.unread.load(Ordering::Acquire);
        if own > 0 && own + bytes > MAX_UNREAD_OF_CONNECTION {
            return None;
        }
        let all = slots.unread.load(Ordering::Acquire);
        if all > 0 && all + bytes > MAX_UNREAD && !slots.free_output() {
            return None;
        }
        occupant.unread.fetch_add(bytes, Ordering::AcqRel);
        slots.unread.fetch_add(bytes, Ordering::AcqRel);
        Some(Unread { slot: self.clone(), bytes })
    }

    /// A request begins; its handler runs until the guard is dropped.
    pub(crate) fn working(&self) -> Working {
        self.0.occupant.has_asked.store(true, Ordering::Release);
        self.progress();
        self.0.occupant.working.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    /// Bytes are being sent to the client until the guard is dropped.
    pub(super) fn sending(&self) -> Sending {
        self.0.occupant.sending.fetch_add(1, Ordering::AcqRel);
        Sending { slot: self.clone(), is_idle: false }
    }

    /// The handler of a request waits for an event until the guard is dropped.
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

    /// The connection should end soon: waiting handlers answer now.
    pub(crate) async fn retired(&self) {
        self.0.occupant.retired.cancelled().await;
    }

    pub(crate) fn progress(&self) {
        self.0.occupant.progress_at.store(self.0.slots.now(), Ordering::Release);
    }
}

impl Working {
    /// The handler is done; its response is being sent until the new guard is dropped.
    pub(crate) fn sending(self) -> Sending {
        self.0.sending()
    }
}

impl Sending {
    /// The client has read a part of the response.
    pub(crate) fn progress(&mut self) {
        self.slot.progress();
        if std::mem::take(&mut self.is_idle) {
            self.slot.0.occupant.idle.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The client could read more, but there is nothing to send now.
    pub(crate) fn idle(&mut self) {
        if !std::mem::replace(&mut self.is_idle, true) {
            self.slot.0.occupant.idle.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Waiting {
    /// Completes when another connection needs the slot: answer now. Never completes without a slot.
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

impl Drop for Unread {
    fn drop(&mut self) {
        let Held { occupant, slots, .. } = &*self.slot.0;
        occupant.unread.fetch_sub(self.bytes, Ordering::AcqRel);
        slots.unread.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut places = self.slots.places();
        places.taken.remove(&self.id);
        places.lobby.remove(&self.id);
        drop(places);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Millis, Timestamp};

    fn slots(clock: &Clock) -> Arc<ConnectionSlots> {
        let half = Percent::new(50).unwrap();
        Arc::new(ConnectionSlots::new(clock.clone(), 8, Percent::ALL, half))
    }

    fn connect(slots: &Arc<ConnectionSlots>) -> ConnectionSlot {
        slots.enter(IpAddr::from([127, 0, 0, 1])).unwrap()
    }

    #[test]
    fn a_token_holds_its_share_and_leaves_room_for_others() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let slots = slots(&clock);
        let mut busy: Vec<_> = (0..4).map(|_| connect(&slots)).map(|slot| (slot.working(), slot)).collect();
        assert!(busy.iter().all(|(_, slot)| slot.belong_to("greedy").is_ok()));
        let next = connect(&slots);
        assert_eq!(next.belong_to("greedy"), Err(4), "all of its connections are at work");
        assert_eq!(connect(&slots).belong_to("other"), Ok(()));
        assert_eq!(busy[0].1.belong_to("greedy"), Ok(()), "it is counted already");
        busy.pop();
        assert_eq!(connect(&slots).belong_to("greedy"), Ok(()), "one that ended makes room");
    }

    #[test]
    fn a_silent_connection_of_the_token_gives_way() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let slots = slots(&clock);
        let silent: Vec<_> = (0..4).map(|_| connect(&slots)).collect();
        let another = connect(&slots);
        assert!(another.belong_to("other").is_ok());
        assert!(silent.iter().all(|slot| slot.belong_to("greedy").is_ok()));
        clock.advance(Millis::new(SILENCE_MS));
        assert_eq!(connect(&slots).belong_to("greedy"), Ok(()));
        assert_eq!(silent.iter().filter(|slot| slot.0.occupant.evicted.is_cancelled()).count(), 1);
        assert!(!another.0.occupant.evicted.is_cancelled());
    }
}
