//! The reference table of the presets, literally, and all attempts of each until it gives up.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use windlass_core::decide::Why;
use windlass_core::policy::{PRESETS, Partial, Policy, Role};
use windlass_core::{
    Delivery, Failure, LiveRules, Millis, Next, Outcome, Reason, Roll, Running, State, Timestamp, decide, preview,
};

fn policy(line: &str) -> Policy {
    Partial::resolve(&[Partial::parse_line(line).unwrap()], &[]).unwrap()
}

fn millis(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|t| Millis::parse(t).unwrap().get()).collect()
}

/// Preset, retries, the first ten delays before jitter, jitter, cap.
const TABLE: [(&str, u32, &str, &str, &str); 11] = [
    ("stepped", 3, "30s 60s 120s 120s 120s 120s 120s 120s 120s 120s", "none", "none"),
    ("full-jitter", 3, "500ms 1s 2s 4s 8s 16s 30s 30s 30s 30s", "full", "30s"),
    ("exponential", 3, "1m 2m 4m 8m 16m 32m 1h 1h 1h 1h", "spread(0.2)", "1h"),
    ("linear", 3, "1m 2m 3m 4m 5m 6m 7m 8m 9m 10m", "spread(0.2)", "1h"),
    ("fixed", 3, "1m 1m 1m 1m 1m 1m 1m 1m 1m 1m", "spread(0.2)", "1h"),
    ("fibonacci", 3, "1m 1m 2m 3m 5m 8m 13m 21m 34m 55m", "spread(0.2)", "1h"),
    ("http", 3, "1s 2s 4s 8s 16s 32s 64s 128s 256s 300s", "none", "5m"),
    ("queue-worker", 4, "1s 2s 4s 8s 16s 32s 60s 60s 60s 60s", "additive(0.3)", "1m"),
    ("financial", 5, "1s 2s 4s 8s 16s 32s 60s 60s 60s 60s", "full", "1m"),
    ("low-latency", 2, "100ms 200ms 400ms 800ms 1600ms 3200ms 5s 5s 5s 5s", "full", "5s"),
    ("once", 0, "0 0 0 0 0 0 0 0 0 0", "none", "none"),
];

#[test]
fn every_preset_is_in_the_table_and_has_its_numbers() {
    assert_eq!(PRESETS.iter().map(|p| p.name).collect::<Vec<_>>(), TABLE.map(|row| row.0));
    for (name, retries, delays, jitter, cap) in TABLE {
        let p = policy(name);
        let shown: Vec<u64> = preview(&p, 10).delays.iter().map(|d| d.delay.get()).collect();
        assert_eq!(shown, millis(delays), "{name}");
        assert_eq!((p.max_retries, p.jitter.to_string().as_str()), (retries, jitter), "{name}");
        assert_eq!(p.max_delay.map_or("none".to_owned(), |c| c.to_string()), cap, "{name}");
        assert_eq!((p.max_elapsed, p.max_crashes, p.max_retry_after), (None, 3, Millis::from_secs(3600)), "{name}");
    }
}

/// The windows of the first ten retries; a single number is a window without width.
const WINDOWS: [(&str, &str); 10] = [
    ("stepped", "30s 60s 120s 120s 120s 120s 120s 120s 120s 120s"),
    ("full-jitter", "0-500ms 0-1s 0-2s 0-4s 0-8s 0-16s 0-30s 0-30s 0-30s 0-30s"),
    (
        "exponential",
        "48s-72s 96s-144s 192s-288s 384s-576s 768s-1152s 1536s-2304s 2160s-3600s 2160s-3600s 2160s-3600s 2160s-3600s",
    ),
    ("linear", "48s-72s 96s-144s 144s-216s 192s-288s 240s-360s 288s-432s 336s-504s 384s-576s 432s-648s 480s-720s"),
    ("fixed", "48s-72s 48s-72s 48s-72s 48s-72s 48s-72s 48s-72s 48s-72s 48s-72s 48s-72s 48s-72s"),
    (
        "fibonacci",
        "48s-72s 48s-72s 96s-144s 144s-216s 240s-360s 384s-576s 624s-936s 1008s-1512s 1632s-2448s 2280s-3600s",
    ),
    ("http", "1s 2s 4s 8s 16s 32s 64s 128s 256s 300s"),
    (
        "queue-worker",
        "1s-1300ms 2s-2600ms 4s-5200ms 8s-10400ms 16s-20800ms 32s-41600ms 42s-60s 42s-60s 42s-60s 42s-60s",
    ),
    ("financial", "0-1s 0-2s 0-4s 0-8s 0-16s 0-32s 0-60s 0-60s 0-60s 0-60s"),
    ("low-latency", "0-100ms 0-200ms 0-400ms 0-800ms 0-1600ms 0-3200ms 0-5s 0-5s 0-5s 0-5s"),
];

#[test]
fn the_windows_of_every_preset_match_the_table() {
    for (name, windows) in WINDOWS {
        let shown: Vec<_> =
            preview(&policy(name), 10).delays.iter().map(|d| (d.window.min.get(), d.window.max.get())).collect();
        let expected: Vec<_> = windows
            .split_whitespace()
            .map(|w| w.split_once('-').unwrap_or((w, w)))
            .map(|(min, max)| (millis(min)[0], millis(max)[0]))
            .collect();
        assert_eq!(shown, expected, "{name}");
    }
}

/// Runs a job that always fails at once, and returns when attempts started (in milliseconds since the first)
/// and why it was given up.
fn life(policy: &Policy, roll: Roll) -> (Vec<u64>, Reason) {
    let start = Timestamp::from_millis(1_767_268_800_000);
    let (mut now, mut failures, mut previous_delay) = (start, 0, Millis::ZERO);
    let mut starts = vec![0];
    loop {
        let job = Running {
            failures,
            crashes: 0,
            first_attempt_at: start,
            previous_delay,
            delivery: Delivery::AtLeastOnce,
            cancel_requested: false,
            is_probe: false,
            policy,
            rules: LiveRules::default(),
        };
        let step = decide(&job, &Outcome::Failed(Failure::new("no")), now, roll);
        failures = step.failures;
        match step.next {
            Next::Wait { state, due_at, delay } => {
                assert_eq!((state, due_at), (State::Retrying, now + delay));
                (now, previous_delay) = (due_at, delay);
                starts.push(now.since(start).get());
            }
            Next::Failed(reason) => {
                assert_eq!((step.why, failures), (Why::GaveUp(reason), starts.len() as u32));
                return (starts, reason);
            }
            Next::Succeeded | Next::Cancelled => panic!("a failing job {:?}", step.next),
        }
    }
}

#[test]
fn http_runs_at_0_1_3_and_7_seconds_then_gives_up() {
    assert_eq!(life(&policy("http"), Roll(0)), (vec![0, 1000, 3000, 7000], Reason::Exhausted));
}

#[test]
fn stepped_and_full_jitter_run_four_times_and_queue_worker_five() {
    for (name, executions) in [("stepped", 4), ("full-jitter", 4), ("queue-worker", 5), ("once", 1)] {
        for roll in [Roll(0), Roll(u64::MAX / 2), Roll(u64::MAX)] {
            let (starts, reason) = life(&policy(name), roll);
            assert_eq!((starts.len(), reason), (executions, Reason::Exhausted), "{name}");
        }
    }
    assert_eq!(life(&policy("stepped"), Roll(7)).0, vec![0, 30_000, 90_000, 210_000]);
}

#[test]
fn every_preset_gives_up_after_its_retries_within_its_preview() {
    for preset in PRESETS {
        let p = policy(preset.name);
        let shown = preview(&p, p.max_retries);
        let earliest: u64 = shown.delays.iter().map(|d| d.window.min.get()).sum();
        for (roll, total) in [(Roll(0), earliest), (Roll(u64::MAX), shown.longest().get())] {
            let (starts, reason) = life(&p, roll);
            assert_eq!((starts.len() as u32, reason), (p.max_attempts(), Reason::Exhausted), "{}", preset.name);
            assert_eq!(*starts.last().unwrap(), total, "{}", preset.name);
        }
    }
}

#[test]
fn each_role_has_its_default_policy() {
    for (role, name) in [(Role::Handler, "exponential"), (Role::Http, "http"), (Role::Delivery, "stepped")] {
        assert_eq!(role.default_policy(), Partial::parse_line(name).unwrap());
    }
}
