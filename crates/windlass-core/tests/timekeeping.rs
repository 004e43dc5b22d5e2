//! What readings of a clock mean, for any readings.

use proptest::prelude::*;
use windlass_core::timekeeping::{Course, DRIFT, Sighting, Step, Waiting, slept};
use windlass_core::{Millis, Timestamp};

/// A clock that is `ahead` of the time since boot, read at `at`, with a delay before and after the reading.
fn read(ahead: i64, at: u64, before: u64, after: u64) -> Sighting {
    Sighting {
        time: Timestamp::from_millis(at as i64 + ahead),
        asked: Millis::new(at.saturating_sub(before)),
        answered: Millis::new(at + after),
    }
}

const YEARS: i64 = 1_700_000_000_000;

proptest! {
    #[test]
    fn a_clock_that_runs_on_is_never_called_stepped_and_never_read_early(
        ahead in 0..YEARS, readings in prop::collection::vec((1u64..10_000, 0u64..5_000, 0u64..5_000), 1..50),
    ) {
        let (mut at, mut course) = (100_000, None::<Course>);
        for (pause, before, after) in readings {
            at += pause;
            let seen = read(ahead, at, before, after);
            let (next, step) = course.map_or((Course::seen(seen), None), |course| course.follow(seen));
            prop_assert_eq!(step, None);
            prop_assert!(next.ahead() <= ahead, "{} passes {ahead}", next.ahead());
            prop_assert!(ahead - next.ahead() <= after as i64, "a quick reading is exact");
            course = Some(next);
        }
    }

    #[test]
    fn a_step_longer_than_the_reading_took_is_seen_with_its_sign_and_size(
        ahead in YEARS / 2..YEARS, step in 1_000i64..1_000_000_000, back: bool, before in 0u64..400, after in 0u64..400,
    ) {
        let step = if back { -step } else { step };
        let course = Course::seen(read(ahead, 5_000, before, after));
        let (course, seen) = course.follow(read(ahead + step, 6_000, before, after));
        let Some(Step(seen)) = seen else { return Err(TestCaseError::fail("the step was not seen")) };
        prop_assert_eq!(seen.signum(), step.signum());
        prop_assert!((seen - step).abs() <= (before + after) as i64);
        prop_assert!((course.ahead() - (ahead + step)).abs() <= after as i64, "the new time is followed at once");
    }

    #[test]
    fn drift_is_followed_without_a_word(ahead in 0..YEARS, drifts in prop::collection::vec(-DRIFT..=DRIFT, 1..50)) {
        let (mut ahead, mut at) = (ahead, 10_000);
        let mut course = Course::seen(read(ahead, at, 0, 0));
        for drift in drifts {
            (ahead, at) = (ahead + drift, at + 1_000);
            let (next, step) = course.follow(read(ahead, at, 0, 0));
            prop_assert_eq!(step, None);
            prop_assert_eq!(next.ahead(), ahead);
            course = next;
        }
    }

    #[test]
    fn after_a_step_back_only_what_the_faster_clock_dated_moves(
        now in 0..YEARS, step in DRIFT + 1..10_000_000, wait in 0u64..100_000, early in 0i64..10_000,
    ) {
        let at = |millis: i64| Timestamp::from_millis(millis);
        let fast = at(now + step);
        let wait = Millis::new(wait);
        let at_once = Waiting { created_at: fast, due_at: fast, ended: None };
        prop_assert_eq!(at_once.due_after_set_back(at(now)), Some(at(now)));
        let delayed = Waiting { created_at: fast, due_at: fast + wait + Millis::new(1), ended: None };
        prop_assert_eq!(delayed.due_after_set_back(at(now)), None, "it may have been asked for");
        let retry = Waiting { created_at: at(now - early), due_at: fast + wait, ended: Some((fast, Some(fast + wait))) };
        prop_assert_eq!(retry.due_after_set_back(at(now)), Some(at(now) + wait));
        let amended = Waiting { due_at: fast + wait + Millis::new(1), ..retry };
        prop_assert_eq!(amended.due_after_set_back(at(now)), None, "an operator chose its time");
        let on_time = at(now - early);
        for ended in [None, Some((on_time, Some(on_time + wait)))] {
            let waiting = Waiting { created_at: on_time, due_at: on_time + wait, ended };
            prop_assert_eq!(waiting.due_after_set_back(at(now)), None, "the clock was right");
        }
    }

    #[test]
    fn any_readings_at_all_are_taken(times in prop::collection::vec((any::<i64>(), any::<u64>(), any::<u64>()), 2..9)) {
        let sighting = |(time, asked, answered)| Sighting {
            time: Timestamp::from_millis(time), asked: Millis::new(asked), answered: Millis::new(answered),
        };
        let mut course = Course::seen(sighting(times[0]));
        for time in &times[1..] {
            course = course.follow(sighting(*time)).0;
        }
    }
}

#[test]
fn a_machine_that_slept_is_noticed_and_a_busy_one_is_not() {
    assert_eq!(slept(Millis::from_secs(3_601), Millis::from_secs(1)), Some(Millis::from_secs(3_600)));
    assert_eq!(slept(Millis::from_secs(5), Millis::from_secs(5)), None);
    assert_eq!(slept(Millis::from_secs(5), Millis::from_secs(6)), None);
}
