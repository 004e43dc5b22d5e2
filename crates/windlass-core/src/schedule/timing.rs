//! When a schedule fires next after it was created, changed, paused or resumed. Pure.

use super::Cadence;
use crate::time::Timestamp;

/// The parts of a schedule that its next firing depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// `None` if it cannot be read.
    pub cadence: Option<Cadence>,
    /// Whether it continues after its first firing.
    pub recurs: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// Its next firing, as stored.
    pub next_at: Option<Timestamp>,
}

/// The effect of a change on the next firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFiring {
    /// It stays as it is stored. A firing that happens meanwhile is not undone.
    Unchanged,
    /// It becomes this one.
    At(Option<Timestamp>),
}

impl Timing {
    /// The first firing of a new schedule.
    #[must_use]
    pub fn first(&self, now: Timestamp) -> Option<Timestamp> {
        self.cadence.as_ref().and_then(|cadence| cadence.next_after(now))
    }

    /// The next firing after a change from `self` to `after`. It is computed again when the cadence changes, when a
    /// pause ends (firings missed during the pause are skipped), and when a schedule without firings left becomes
    /// recurring. A one-shot schedule that has fired never gets another, even if it is paused and resumed.
    #[must_use]
    pub fn changed(&self, after: &Self, now: Timestamp) -> NextFiring {
        let is_new = self.cadence != after.cadence;
        let has_one = after.recurs || self.next_at.is_some();
        let resumes = self.paused && !after.paused && has_one;
        let starts_to_recur = after.recurs && !self.recurs && self.next_at.is_none();
        if is_new || resumes || starts_to_recur { NextFiring::At(after.first(now)) } else { NextFiring::Unchanged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Millis;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_767_268_800_000);

    fn timing(seconds: u64, recurs: bool, paused: bool, next_at: Option<Timestamp>) -> Timing {
        let cadence = Cadence::every(Millis::from_secs(seconds), NOW).ok();
        Timing { cadence, recurs, paused, next_at }
    }

    fn later(seconds: u64) -> Timestamp {
        NOW + Millis::from_secs(seconds)
    }

    #[test]
    fn a_new_schedule_fires_first_after_it_was_made() {
        assert_eq!(timing(30, true, false, None).first(NOW), Some(later(30)));
    }

    #[test]
    fn a_pause_keeps_the_next_firing_and_a_resume_computes_it_again() {
        let running = timing(30, true, false, Some(later(30)));
        let paused = Timing { paused: true, ..running.clone() };
        assert_eq!(running.changed(&paused, later(10)), NextFiring::Unchanged);
        assert_eq!(paused.changed(&running, later(100)), NextFiring::At(Some(later(120))));
        assert_eq!(running.changed(&running, later(100)), NextFiring::Unchanged, "it was not paused");
    }

    #[test]
    fn a_new_cadence_computes_the_next_firing_again() {
        let before = timing(30, true, false, Some(later(30)));
        for paused in [false, true] {
            let after = timing(40, true, paused, None);
            assert_eq!(before.changed(&after, later(10)), NextFiring::At(Some(later(40))));
        }
    }

    #[test]
    fn a_one_shot_schedule_that_has_fired_does_not_fire_again() {
        let spent = timing(30, false, true, None);
        let resumed = Timing { paused: false, ..spent.clone() };
        assert_eq!(spent.changed(&resumed, later(100)), NextFiring::Unchanged);
        let recurs = Timing { recurs: true, ..resumed.clone() };
        assert_eq!(resumed.changed(&recurs, later(100)), NextFiring::At(Some(later(120))));
    }

    proptest! {
        #[test]
        fn a_new_next_firing_is_always_later_than_now(
            spans in (1_u64..100, 1_u64..100), flags in any::<[bool; 4]>(), fired in any::<bool>(), now in 0_u64..1000,
        ) {
            let before = timing(spans.0, flags[0], flags[1], (!fired).then(|| later(spans.0)));
            let after = timing(spans.1, flags[2], flags[3], None);
            match before.changed(&after, later(now)) {
                NextFiring::At(next) => prop_assert!(next.is_some_and(|at| at > later(now))),
                NextFiring::Unchanged => prop_assert_eq!(before.cadence, after.cadence),
            }
        }
    }
}
