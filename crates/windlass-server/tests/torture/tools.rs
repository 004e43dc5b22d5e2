//! Helpers: wait for conditions, draw random numbers by seed, read numbers from the environment.

use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// A wait without progress for this long has failed.
pub const HANG: Duration = Duration::from_secs(180);
/// How often a condition is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for a condition.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    progress(what, || u64::from(!holds()));
}

/// Waits until a number is zero; fails if it does not change for too long.
#[track_caller]
pub fn progress(what: &str, mut left: impl FnMut() -> u64) {
    let (mut watch, mut before) = (Stopwatch::start(), u64::MAX);
    loop {
        let now = left();
        if now == 0 {
            return;
        }
        if now != before {
            (watch, before) = (Stopwatch::start(), now);
        }
        assert!(watch.elapsed() < HANG, "{what}: {now} left, and nothing moves");
        pause(LOOK);
    }
}

/// Lets time pass: other processes use the real clock.
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// A number from the environment, which sets the length of the long version.
pub fn asked(name: &str, short: u64) -> u64 {
    let name = format!("WINDLASS_TEST_{name}");
    std::env::var(&name).map_or(short, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The seed of a run: from the environment, or a new one.
pub fn seed() -> u64 {
    asked("SEED", Random::system().number() >> 32)
}

/// A number below `bound`.
pub fn below(random: &Random, bound: u64) -> u64 {
    random.number() % bound.max(1)
}

/// True with a probability of `percent` percent.
pub fn chance(random: &Random, percent: u64) -> bool {
    below(random, 100) < percent
}

pub fn millis(random: &Random, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(range.start + below(random, range.end - range.start))
}
