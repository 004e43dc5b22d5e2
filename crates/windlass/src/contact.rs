//! Contact: for how long this process has been in unbroken contact with its store. A lease is only reaped by a node whose
//! contact has lasted longer than the lease, so that after an outage every worker first gets to renew.

use crate::clock::Clock;
use crate::store::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;

/// A silence longer than this is no contact: the process, or the machine, may have stood still.
const MAX_SILENCE: Millis = Millis::from_secs(15);

/// When this process last heard from its store, and since when without a break.
#[derive(Debug, Default)]
pub struct Contact(Mutex<Option<Span>>);

#[derive(Debug, Clone, Copy)]
struct Span {
    since: Millis,
    seen: Millis,
}

impl Contact {
    /// Learns from the result of a call to the store.
    pub fn heard<T>(&self, result: &Result<T, StoreError>, clock: &Clock) {
        let now = clock.monotonic();
        let mut span = self.lock();
        let is_answer = match result {
            // A store that refuses has answered: whoever sends it nonsense must not keep leases from being reaped.
            Ok(_) | Err(StoreError::Invalid(_) | StoreError::Corrupt { .. } | StoreError::Schema(_)) => true,
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) => false,
        };
        *span = match *span {
            _ if !is_answer => None,
            Some(Span { since, seen }) if now - seen <= MAX_SILENCE => Some(Span { since, seen: now }),
            Some(_) | None => Some(Span { since: now, seen: now }),
        };
    }

    /// How long the contact has lasted.
    #[must_use]
    pub fn length(&self) -> Millis {
        self.lock().map_or(Millis::ZERO, |span| span.seen - span.since)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Timestamp;

    #[test]
    fn an_error_or_a_long_silence_breaks_the_contact() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let contact = Contact::default();
        let hear = |result: Result<(), StoreError>, after: u64| {
            clock.advance(Millis::from_secs(after));
            contact.heard(&result, &clock);
            contact.length()
        };
        assert_eq!(hear(Ok(()), 0), Millis::ZERO);
        assert_eq!(hear(Ok(()), 10), Millis::from_secs(10));
        assert_eq!(hear(Ok(()), 10), Millis::from_secs(20));
        assert_eq!(hear(Err(StoreError::unavailable("away")), 1), Millis::ZERO);
        assert_eq!(hear(Ok(()), 1), Millis::ZERO);
        assert_eq!(hear(Ok(()), 5), Millis::from_secs(5));
        assert_eq!(hear(Err(StoreError::Invalid("nonsense".into())), 5), Millis::from_secs(10));
        assert_eq!(hear(Ok(()), 60), Millis::ZERO);
    }
}
