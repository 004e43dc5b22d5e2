//! Passed over: how far claims of some kinds have looked past jobs of other kinds. One claim looks at a bounded number
//! of due jobs, and the next one of the same kinds continues there, so that no number of other jobs is in the way.
//! After a while everything is looked at again, because a job may become due among those passed over.

use super::Kinds;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use windlass_core::{Millis, Timestamp};

/// How many due jobs of one lane a claim looks at, or as many as it wants if that is more.
const LOOK: u32 = 1000;
/// Looking starts again from the front after this time, …
const RESTART: Millis = Millis::from_secs(1);
/// … and this much later for each look that it would repeat, so that it takes a small part of the time, …
const RESTART_PER_LOOK: Millis = Millis::new(100);
/// … but after this time at the latest.
const LATEST_RESTART: Millis = Millis::from_secs(60);
/// The most places remembered; beyond it, all are forgotten.
const LIMIT: usize = 10_000;

/// The place of a job in its lane: due time and id.
pub(in crate::store) type Place = (i64, i64);

/// Which places claims start from, by kinds and lane. A lane is whatever the store reads in one order.
#[derive(Debug, Default)]
pub(in crate::store) struct PassedOver(Mutex<HashMap<(Kinds, i64), Passed>>);

#[derive(Debug, Clone, Copy)]
struct Passed {
    place: Place,
    since: Timestamp,
    looks: u64,
}

impl Passed {
    fn is_over(&self, now: Timestamp) -> bool {
        let wait = RESTART.get().saturating_add(RESTART_PER_LOOK.get().saturating_mul(self.looks));
        now < self.since || now > self.since + Millis::new(wait).min(LATEST_RESTART)
    }
}

impl PassedOver {
    /// The first place to look at.
    pub(in crate::store) fn start(&self, kinds: &Kinds, lane: i64, now: Timestamp) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kinds.clone(), lane);
        match places.get(&key) {
            Some(passed) if !passed.is_over(now) => passed.place,
            Some(_) => {
                places.remove(&key);
                Place::default()
            }
            None => Place::default(),
        }
    }

    /// A claim has looked at as many jobs as it may, and none before this place is of these kinds.
    pub(in crate::store) fn advance(&self, kinds: &Kinds, lane: i64, place: Place, now: Timestamp) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= LIMIT {
            places.clear();
        }
        let passed = places.entry((kinds.clone(), lane)).or_insert(Passed { place, since: now, looks: 0 });
        passed.place = passed.place.max(place);
        passed.looks += 1;
    }

    /// Jobs became due among those passed over.
    pub(in crate::store) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// How many jobs of a lane a claim that wants this many looks at.
pub(in crate::store) const fn look(wanted: u32) -> u32 {
    if wanted > LOOK { wanted } else { LOOK }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::job::Kind;

    fn at(secs: u64) -> Timestamp {
        Timestamp::EPOCH + Millis::from_secs(1_000_000 + secs)
    }

    #[test]
    fn a_claim_continues_where_the_last_one_of_its_kinds_ended_until_it_is_time_to_start_again() {
        let passed = PassedOver::default();
        let kinds = |name: &str| [Kind::new(name).unwrap()].into_iter().collect::<Kinds>();
        assert_eq!(passed.start(&kinds("a"), 1, at(0)), (0, 0));
        passed.advance(&kinds("a"), 1, (5, 7), at(0));
        passed.advance(&kinds("a"), 1, (6, 1), at(0));
        assert_eq!(passed.start(&kinds("a"), 1, at(1)), (6, 1));
        assert_eq!(passed.start(&kinds("b"), 1, at(1)), (0, 0), "other kinds");
        assert_eq!(passed.start(&kinds("a"), 2, at(1)), (0, 0), "another lane");
        assert_eq!(passed.start(&kinds("a"), 1, at(2)), (0, 0), "1.2 s have passed");
        assert_eq!(passed.start(&kinds("a"), 1, at(1)), (0, 0), "it is forgotten");
        passed.advance(&kinds("a"), 1, (5, 7), at(0));
        passed.forget();
        assert_eq!(passed.start(&kinds("a"), 1, at(0)), (0, 0));
    }

    #[test]
    fn the_more_was_passed_over_the_rarer_it_is_looked_at_again() {
        let passed = |looks| Passed { place: (0, 0), since: at(0), looks };
        assert!(!passed(1000).is_over(at(60)));
        assert!(passed(1000).is_over(at(61)));
        assert!(passed(10).is_over(at(3)));
        assert!(passed(0).is_over(Timestamp::EPOCH), "a clock that was set back");
    }
}
