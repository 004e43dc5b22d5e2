//! Store contact: when this process lost contact with its store. A node reaps a lease only after it was in contact with
//! the store for as long as the lease lasts, so that after an outage every worker first gets to renew.

use crate::clock::Clock;
use crate::store::{Spared, StoreError};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;

/// How many silences are kept. Beyond that, the two oldest are merged.
const SILENCES: usize = 32;

/// When this process was in contact with its store, and when it was not.
#[derive(Debug, Default)]
pub struct StoreContact(Mutex<History>);

#[derive(Debug, Default)]
struct History {
    /// Writes without an answer yet: when each began, with a number of its own.
    open: BTreeSet<(Millis, u64)>,
    writes: u64,
    /// When the write began that began last of those with an answer.
    written: Millis,
    /// When the first call ended, whatever its result.
    first: Option<Millis>,
    /// When the store last answered. `None` before the first answer and after a failed call.
    last: Option<Millis>,
    /// The longest first. A silence shorter than a later one no longer matters.
    silences: Vec<Silence>,
}

#[derive(Debug, Clone, Copy)]
struct Silence {
    length: Millis,
    ended: Millis,
}

impl StoreContact {
    /// Makes a call that writes. As long as neither it nor a later write has an answer, the store counts as silent,
    /// whatever reads it answers: a database whose commits wait for a standby still answers those. A later write that
    /// has an answer shows that only this one is stuck, for example behind a lock.
    pub async fn write<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
        clock: &Clock,
    ) -> Result<T, StoreError> {
        let open = self.open(clock);
        let result = call.await;
        if result.is_ok() {
            self.lock().written(open.write.0, clock.monotonic());
        }
        drop(open);
        self.record_contact(&result, clock);
        result
    }

    fn open(&self, clock: &Clock) -> Open<'_> {
        let mut history = self.lock();
        history.writes += 1;
        let write = (clock.monotonic(), history.writes);
        history.open.insert(write);
        Open { contact: self, write }
    }

    /// Records the result of a call to the store.
    pub fn record_contact<T>(&self, result: &Result<T, StoreError>, clock: &Clock) {
        let now = clock.monotonic();
        let mut history = self.lock();
        match result {
            // A store that refuses a call has answered. Invalid calls must not keep leases from being reaped.
            Ok(_)
            | Err(
                StoreError::Invalid(_) | StoreError::Corrupt { .. } | StoreError::Sealed(_) | StoreError::Schema(_),
            ) => {
                history.answer(now);
            }
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) => history.failure(now),
        }
    }

    /// The leases that must not be reaped now, if other nodes may `notice` this much later than this one that the store
    /// answers again.
    #[must_use]
    pub fn spared(&self, clock: &Clock, notice: Millis) -> Spared {
        let now = clock.monotonic();
        let history = self.lock();
        let (Some(first), Some(last)) = (history.first, history.last) else { return Spared::all() };
        // Nothing says that there was an outage before this process started, so other nodes need no time to notice.
        let mut spared = Spared::beyond(now - first);
        for silence in &history.silences {
            spared.after(silence.length, now - silence.ended, notice);
        }
        spared.after(now - last.min(history.unanswered().unwrap_or(now)), Millis::ZERO, notice);
        spared
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write without an answer yet. One that is given up is forgotten.
struct Open<'a> {
    contact: &'a StoreContact,
    write: (Millis, u64),
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.contact.lock().open.remove(&self.write);
    }
}

impl History {
    fn answer(&mut self, now: Millis) {
        let length = match (self.last, self.first) {
            (Some(last), _) => now - last,
            (None, Some(_)) => Millis::MAX,
            (None, None) => Millis::ZERO,
        };
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.silent(length, now);
    }

    fn failure(&mut self, now: Millis) {
        self.first.get_or_insert(now);
        self.last = None;
    }

    /// When the first write began that has no answer, and none after it has one.
    fn unanswered(&self) -> Option<Millis> {
        self.open.range((self.written, 0)..).next().map(|(began, _)| *began)
    }

    /// A write that began then has an answer now, which ends the silence of all that wait for one.
    fn written(&mut self, began: Millis, now: Millis) {
        let since = self.unanswered().unwrap_or(now);
        self.silent(now - since, now);
        self.written = self.written.max(began);
    }

    fn silent(&mut self, length: Millis, ended: Millis) {
        if length <= Spared::SHORT {
            return;
        }
        self.silences.retain(|silence| silence.length > length);
        self.silences.push(Silence { length, ended });
        if self.silences.len() > SILENCES {
            let oldest = self.silences.remove(0);
            self.silences[0].length = oldest.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Timestamp;

    /// Which leases, in seconds, may be reaped after these calls. Each call answered or failed some milliseconds after
    /// the previous one.
    fn reapable(calls: &[(u64, bool)], leases: &[u64]) -> Vec<u64> {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        for (after, answers) in calls {
            clock.advance(Millis::new(*after));
            let result = if *answers { Ok(()) } else { Err(StoreError::unavailable("away")) };
            store_contact.record_contact(&result, &clock);
        }
        let spared = store_contact.spared(&clock, Millis::ZERO);
        leases.iter().copied().filter(|lease| !spared.holds(Millis::from_secs(*lease))).collect()
    }

    const SECOND: (u64, bool) = (1000, true);

    #[test]
    fn after_an_outage_leases_are_spared_until_other_nodes_have_noticed_its_end() {
        let notice = Millis::from_secs(10);
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        let answers = |seconds: u64| {
            for _ in 0..seconds {
                clock.advance(Millis::from_secs(1));
                store_contact.record_contact(&Ok(()), &clock);
            }
        };
        let holds = |seconds| store_contact.spared(&clock, notice).holds(Millis::from_secs(seconds));
        answers(4);
        assert!(!holds(3) && holds(30), "a process that has just started knows of no outage");
        answers(40);
        store_contact.record_contact(&Err::<(), _>(StoreError::unavailable("away")), &clock);
        answers(13);
        assert!(holds(3) && holds(30));
        answers(1);
        assert!(!holds(3) && holds(30));
        answers(27);
        assert!(!holds(30));
        // Commits may have waited for two seconds here and for twelve elsewhere.
        clock.advance(Millis::from_secs(2));
        store_contact.record_contact(&Ok(()), &clock);
        assert!(holds(3) && holds(23) && !holds(24));
    }

    #[test]
    fn an_outage_that_lasts_since_the_start_is_one() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        store_contact.record_contact(&Err::<(), _>(StoreError::unavailable("away")), &clock);
        clock.advance(Millis::from_secs(60));
        store_contact.record_contact(&Ok(()), &clock);
        clock.advance(Millis::from_secs(1));
        assert!(store_contact.spared(&clock, Millis::from_secs(10)).holds(Millis::new(500)));
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::new(500)));
    }

    #[test]
    fn a_lease_is_spared_until_the_contact_has_lasted_as_long() {
        assert!(reapable(&[], &[1, 3, 30]).is_empty(), "no call was answered yet");
        assert_eq!(reapable(&[SECOND; 1], &[1, 3, 30]), [0; 0]);
        assert_eq!(reapable(&[SECOND; 4], &[1, 3, 30]), [1, 3]);
        assert_eq!(reapable(&[SECOND; 31], &[1, 3, 30]), [1, 3, 30]);
    }

    #[test]
    fn a_call_that_fails_breaks_the_contact_and_one_that_is_refused_does_not() {
        let mut calls = vec![SECOND; 40];
        calls.push((1, false));
        assert_eq!(reapable(&calls, &[1, 3, 30]), [0; 0]);
        calls.extend([SECOND; 4]);
        assert_eq!(reapable(&calls, &[1, 3, 30]), [1, 3]);
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        for _ in 0..40 {
            store_contact.record_contact(&Err::<(), _>(StoreError::Invalid("nonsense".into())), &clock);
            clock.advance(Millis::from_secs(1));
        }
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(30)));
    }

    #[test]
    fn a_silence_breaks_contact_for_leases_that_are_short_compared_to_it() {
        let mut calls = vec![SECOND; 70];
        calls.push((2000, true));
        assert_eq!(reapable(&calls, &[1, 3, 4, 30]), [4, 30], "a call that hung hides an outage of its length");
        calls.extend([SECOND; 3]);
        assert_eq!(reapable(&calls, &[1, 3, 4, 30]), [1, 3, 4, 30]);
        calls.push((16_000, true));
        assert_eq!(reapable(&calls, &[1, 3, 4, 30, 40]), [40]);
        calls.push((2000, true));
        assert_eq!(reapable(&calls, &[1, 3, 4, 30, 40]), [40], "a short silence does not hide a longer one before it");
        calls.extend([SECOND; 30]);
        assert_eq!(reapable(&calls, &[1, 3, 4, 30, 40]), [1, 3, 4, 30, 40]);
    }

    #[test]
    fn a_silence_that_goes_on_counts() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        for _ in 0..40 {
            store_contact.record_contact(&Ok(()), &clock);
            clock.advance(Millis::from_secs(1));
        }
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(3)));
        clock.advance(Millis::from_secs(1));
        assert!(store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(3)));
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(30)));
    }

    #[test]
    fn a_write_without_an_answer_is_a_silence_whatever_reads_the_store_answers() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        let reads = |seconds: u64| {
            for _ in 0..seconds {
                store_contact.record_contact(&Ok(()), &clock);
                clock.advance(Millis::from_secs(1));
            }
        };
        let holds = |seconds| store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(seconds));
        reads(40);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut commit = std::pin::pin!(store_contact.write(
            async {
                answered.await.unwrap();
                Ok(())
            },
            &clock
        ));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(commit.as_mut().poll(&mut context).is_pending());
        reads(8);
        assert!(holds(5) && holds(15), "a commit has waited for 8 s");
        assert!(!holds(16) && !holds(30), "half of such a lease is left for a renewal");
        answer.send(()).unwrap();
        assert!(commit.as_mut().poll(&mut context).is_ready());
        assert!(holds(5) && holds(15), "it has only just been answered");
        reads(6);
        assert!(!holds(5) && holds(15));
        reads(10);
        assert!(!holds(15));
    }

    #[test]
    fn a_write_that_is_stuck_while_later_ones_are_answered_is_no_silence() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut stuck = std::pin::pin!(store_contact.write(std::future::pending::<Result<(), _>>(), &clock));
        assert!(stuck.as_mut().poll(&mut context).is_pending());
        for second in 1..=40 {
            clock.advance(Millis::from_secs(1));
            let renewal = std::pin::pin!(store_contact.write(std::future::ready(Ok(())), &clock));
            assert!(renewal.poll(&mut context).is_ready());
            assert_eq!(
                store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(1)),
                second < 2,
                "after {second} s"
            );
        }
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(30)));
    }

    #[test]
    fn the_first_answer_ends_the_silence_of_all_writes() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        for _ in 0..40 {
            store_contact.record_contact(&Ok(()), &clock);
            clock.advance(Millis::from_secs(1));
        }
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut first = std::pin::pin!(store_contact.write(std::future::pending::<Result<(), _>>(), &clock));
        assert!(first.as_mut().poll(&mut context).is_pending());
        for _ in 0..8 {
            clock.advance(Millis::from_secs(1));
            store_contact.record_contact(&Ok(()), &clock);
        }
        // The latest write is answered first.
        assert!(std::pin::pin!(store_contact.write(std::future::ready(Ok(())), &clock)).poll(&mut context).is_ready());
        assert!(store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(15)), "nobody could renew for 8 s");
    }

    #[test]
    fn a_write_that_is_given_up_is_forgotten() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        {
            let mut call = std::pin::pin!(store_contact.write(std::future::pending::<Result<(), _>>(), &clock));
            assert!(call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
        }
        for _ in 0..40 {
            store_contact.record_contact(&Ok(()), &clock);
            clock.advance(Millis::from_secs(1));
        }
        assert!(!store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(30)));
    }

    #[test]
    fn many_silences_are_remembered_in_bounded_space() {
        let (clock, store_contact) = (Clock::manual(Timestamp::EPOCH), StoreContact::default());
        for length in (2000..3000).rev() {
            clock.advance(Millis::new(length));
            store_contact.record_contact(&Ok(()), &clock);
        }
        assert_eq!(store_contact.lock().silences.len(), SILENCES);
        assert!(store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(3)));
        assert!(
            !store_contact.spared(&clock, Millis::ZERO).holds(Millis::from_secs(60)),
            "the first answer is long ago"
        );
    }
}
