//! Waiting by condition, drawing by seed, reading what the environment asks for.

use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// A wait in which nothing moves for this long has failed.
pub const HANG: Duration = Duration::from_secs(180);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for a condition.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    progress(what, || u64::from(!holds()));
}

/// Waits until a number is zero; gives up when it stays the same for too long.
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

/// Lets time pass: other processes live by the real clock.
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// A number of the environment: how long the long version is.
pub fn asked(name: &str, short: u64) -> u64 {
    let name = format!("WINDLASS_TEST_{name}");
    std::env::var(&name).map_or(short, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// The seed of a run: asked for, or new.
pub fn seed() -> u64 {
    asked("SEED", Random::system().number() >> 32)
}

/// A number below `bound`.
pub fn below(random: &Random, bound: u64) -> u64 {
    random.number() % bound.max(1)
}

/// True `percent` times in a hundred.
pub fn chance(random: &Random, percent: u64) -> bool {
    below(random, 100) < percent
}

pub fn millis(random: &Random, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(range.start + below(random, range.end - range.start))
}
