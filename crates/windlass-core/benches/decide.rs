//! Decisions per second on one core, and allocations per decision.
//! Run it with `cargo bench -p windlass-core`.

use std::hint::black_box;
use std::time::{Duration, Instant};
use windlass_core::policy::{PRESETS, Partial, Policy, Role};
use windlass_core::{Delivery, Failure, LiveRules, Millis, Outcome, Roll, Running, Timestamp, decide, preview};

const ROUND: u64 = 1_000_000;
const ROUNDS: u32 = 7;

fn main() {
    println!("{:<52} {:>14} {:>14}", "case", "per second", "allocations");
    for preset in PRESETS {
        report(preset.name, &whole(preset.partial()));
    }
    for line in [
        "exponential:base=1s,factor=1.5,retries=1000",
        "fibonacci:retries=1000",
        "exponential:jitter=decorrelated,retries=1000",
    ] {
        report(line, &whole(Partial::parse_line(line).expect("the bench's lines are policies")));
    }
    let policy = whole(Role::Handler.default_policy());
    let took = best(|| {
        for _ in 0..ROUND / 100 {
            black_box(preview(black_box(&policy), 10));
        }
    });
    println!("{:<52} {:>14}", "preview of ten retries", per_second(ROUND / 100, took));
}

fn whole(level: Partial) -> Policy {
    Partial::resolve(&[level], &Role::Handler.default_give_up_on()).expect("presets are whole")
}

fn report(name: &str, policy: &Policy) {
    let outcome = Outcome::Failed(Failure::new("connection reset").class("ConnectError"));
    let took = best(|| decisions(policy, &outcome, ROUND));
    let allocations = allocation_counter::measure(|| decisions(policy, &outcome, 1000)).count_total;
    println!("{name:<52} {:>14} {:>14}", per_second(ROUND, took), format!("{allocations}/1000"));
}

/// Decides failures of jobs at every retry the policy has, each with a different roll.
fn decisions(policy: &Policy, outcome: &Outcome, count: u64) {
    let retries = u64::from(policy.max_retries.clamp(1, 10));
    for i in 0..count {
        let job = Running {
            failures: (i % retries) as u32,
            crashes: 0,
            first_attempt_at: Timestamp::EPOCH,
            previous_delay: Millis::new(i & 0xFFFF),
            delivery: Delivery::AtLeastOnce,
            cancel_requested: false,
            is_probe: false,
            policy: black_box(policy),
            rules: LiveRules::default(),
        };
        let roll = Roll(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        black_box(decide(black_box(&job), black_box(outcome), Timestamp::EPOCH, roll));
    }
}

/// The fastest of several rounds: other work disturbed the slower ones.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn best(mut work: impl FnMut()) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    rounds.min().unwrap_or_default()
}

fn per_second(count: u64, took: Duration) -> String {
    format!("{:.1} M", count as f64 / took.as_secs_f64() / 1e6)
}
