//! Each jitter spreads evenly over its window. The seed is fixed, so that a failure means a change and not chance.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use windlass_core::policy::{Partial, Policy};
use windlass_core::{Delivery, Failure, LiveRules, Millis, Outcome, Roll, Running, Timestamp, decide};

const SEED: u64 = 0x5EED;
const DRAWS: usize = 200_000;
const BINS: usize = 20;

fn policy(line: &str) -> Policy {
    Partial::resolve(&[Partial::parse_line(line).unwrap()], &[]).unwrap()
}

fn draw(policy: &Policy, previous_delay: Millis, random: &mut StdRng) -> u64 {
    let job = Running {
        failures: 1,
        crashes: 0,
        first_attempt_at: Timestamp::EPOCH,
        previous_delay,
        delivery: Delivery::AtLeastOnce,
        cancel_requested: false,
        is_probe: false,
        policy,
        rules: LiveRules::default(),
    };
    let step = decide(&job, &Outcome::Failed(Failure::new("no")), Timestamp::EPOCH, Roll(random.next_u64()));
    step.next.wait().expect("a retryable failure is retried").1.get()
}

/// Pearson's statistic over equal bins; chance alone exceeds this once in a thousand runs.
const CHI_SQUARED_19: f64 = 43.82;

fn assert_even(line: &str, previous: Millis, min: u64, max: u64) {
    let p = policy(line);
    let mut random = StdRng::seed_from_u64(SEED);
    let mut bins = [0_u32; BINS];
    let mut sum = 0.0;
    for _ in 0..DRAWS {
        let delay = draw(&p, previous, &mut random);
        assert!((min..=max).contains(&delay), "{line}: {delay} is outside {min}..={max}");
        bins[((delay - min) as usize * BINS) / (max - min + 1) as usize] += 1;
        sum += delay as f64;
    }
    let expected = DRAWS as f64 / BINS as f64;
    let chi: f64 = bins.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi < CHI_SQUARED_19, "{line}: chi squared {chi}, bins {bins:?}, seed {SEED}");
    let (mean, middle) = (sum / DRAWS as f64, (min + max) as f64 / 2.0);
    assert!((mean - middle).abs() < (max - min) as f64 / 200.0, "{line}: mean {mean}, middle {middle}, seed {SEED}");
}

#[test]
fn each_jitter_spreads_evenly_over_its_window() {
    // The second retry with a base of 50 s: 100 s before jitter. The window's size is a multiple of the bins.
    for (jitter, min, max) in [
        ("full", 0, 100_000),
        ("equal", 50_000, 100_000),
        ("spread(0.2)", 80_000, 120_000),
        ("additive(0.3)", 100_000, 130_000),
    ] {
        assert_even(&format!("exponential:base=50s,cap=1h,jitter={jitter}"), Millis::ZERO, min, max);
    }
    assert_even("exponential:base=50s,cap=1h,jitter=decorrelated", Millis::from_secs(60), 50_000, 180_000);
}

#[test]
fn delays_at_the_cap_still_spread() {
    assert_even("exponential:base=50s,cap=100s,jitter=spread(0.2)", Millis::ZERO, 60_000, 100_000);
    assert_even("exponential:base=50s,cap=100s,jitter=additive(0.3)", Millis::ZERO, 70_000, 100_000);
}

#[test]
fn no_jitter_is_one_delay() {
    let mut random = StdRng::seed_from_u64(SEED);
    let p = policy("exponential:base=50s,cap=1h,jitter=none");
    assert!((0..1000).all(|_| draw(&p, Millis::ZERO, &mut random) == 100_000));
}

/// Decorrelated delays depend on each other: each window grows from the previous delay.
#[test]
fn decorrelated_delays_stay_between_base_and_cap_and_use_both_ends() {
    let p = policy("exponential:base=1s,cap=60s,jitter=decorrelated");
    let mut random = StdRng::seed_from_u64(SEED);
    let (mut previous, mut least, mut most) = (Millis::ZERO, u64::MAX, 0);
    for _ in 0..DRAWS {
        let delay = draw(&p, previous, &mut random);
        assert!((1000..=60_000).contains(&delay), "{delay}");
        assert!(delay <= (3 * previous.get()).max(1000), "{delay} after {previous}");
        (least, most, previous) = (least.min(delay), most.max(delay), Millis::new(delay));
    }
    assert!(least < 1100 && most > 59_000, "{least}..{most}, seed {SEED}");
}
