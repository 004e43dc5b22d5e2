//! Properties of every simulated scenario and policy. Failing cases print the seed that repeats them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use windlass_core::simulate::{
    Answer, Call, MAX_SPAN, Run, Scenario, Target, simulate, simulate_gated, simulate_watched,
};
use windlass_core::{Millis, Policy, Reason, Roll};

fn policy(line: &str) -> Policy {
    Policy::parse_canonical(line).unwrap()
}

fn run(scenario: &Scenario, policy: &Policy, seed: u64) -> (Run, Vec<Call>) {
    let mut generator = StdRng::seed_from_u64(seed);
    let mut calls = Vec::new();
    let run = simulate_watched(scenario, policy, || Roll(generator.next_u64()), |call| calls.push(*call));
    (run, calls)
}

fn up(capacity: u32) -> Target {
    let [latency, down_at, down_for] = [Millis::ZERO; 3];
    Target { capacity, latency, down_at, down_for, retry_after: None }
}

fn down(capacity: u32, down_at: u64, down_for: u64) -> Target {
    Target { down_at: Millis::from_secs(down_at), down_for: Millis::from_secs(down_for), ..up(capacity) }
}

prop_compose! {
    fn scenario()(
        jobs in 1..300_u32,
        arrival in prop_oneof![Just(0), 0..120_000_u64],
        capacity in prop_oneof![1..40_u32, Just(1_000_000)],
        latency in prop_oneof![Just(0), 0..3_000_u64],
        down_at in prop_oneof![Just(0), 0..60_000_u64],
        down_for in 0..120_000_u64,
        retry_after in prop::option::of(0..20_000_u64),
    ) -> Scenario {
        let target = Target {
            capacity,
            latency: Millis::new(latency),
            down_at: Millis::new(down_at),
            down_for: Millis::new(down_for),
            retry_after: retry_after.map(Millis::new),
        };
        Scenario { jobs, arrival: Millis::new(arrival), target }
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let backoff = prop_oneof![
        (0..60_000_u64).prop_map(|base| format!("exponential:base={base},factor=2")),
        (0..60_000_u64).prop_map(|base| format!("fixed:base={base}")),
        (0..60_000_u64).prop_map(|base| format!("fibonacci:base={base}")),
        Just("steps:30s/60s/120s".to_owned()),
    ];
    let jitters = ["none", "full", "equal", "decorrelated", "spread(0.2)", "additive(0.3)"];
    let elapsed = prop_oneof![Just("none".to_owned()), (0..100_000_u64).prop_map(|ms| ms.to_string())];
    let extra = prop_oneof![4 => Just(""), 1 => Just(",giveUpOn=429")];
    (backoff, prop::sample::select(jitters.to_vec()), 0..12_u32, elapsed, extra).prop_map(
        |(backoff, jitter, retries, elapsed, extra)| {
            policy(&format!("{backoff},cap=1h,jitter={jitter},retries={retries},maxElapsed={elapsed}{extra}"))
        },
    )
}

proptest! {
    #[test]
    fn every_job_succeeds_or_is_given_up_and_every_call_is_counted(
        scenario in scenario(), policy in any_policy(), seed: u64
    ) {
        let (run, calls) = run(&scenario, &policy, seed);
        prop_assert_eq!(run.unfinished, 0);
        prop_assert_eq!(run.succeeded + run.given_up(), scenario.jobs);
        prop_assert_eq!(run.calls, calls.len() as u64);
        prop_assert_eq!(run.calls, run.wasted + u64::from(run.succeeded));
        prop_assert_eq!(run.load.iter().map(|s| u64::from(s.calls)).sum::<u64>(), run.calls);
        prop_assert!(run.calls <= u64::from(scenario.jobs) * u64::from(policy.max_attempts()));
        prop_assert!(run.peak_after.calls <= run.peak.calls);
    }

    #[test]
    fn no_call_is_made_before_its_time(scenario in scenario(), policy in any_policy(), seed: u64) {
        let (_, calls) = run(&scenario, &policy, seed);
        let latency = scenario.target.latency;
        let mut last: HashMap<u32, (Call, Millis)> = HashMap::new();
        for call in calls {
            let waited = match last.get(&call.job) {
                None => {
                    prop_assert_eq!((call.retry, call.at), (0, scenario.arrives(call.job)));
                    Millis::ZERO
                }
                Some((before, previous)) => {
                    prop_assert_eq!(call.retry, before.retry + 1);
                    prop_assert!(call.retry <= policy.max_retries);
                    prop_assert!(before.answer != Answer::Served, "a job is done when it is served");
                    let asked = match before.answer {
                        Answer::Refused => scenario.target.retry_after,
                        Answer::Served | Answer::Down => None,
                    };
                    let own = policy.window(call.retry, *previous);
                    let window = asked
                        .filter(|asked| *asked > own.min)
                        .map_or(own, |asked| policy.window_after(call.retry, *previous, asked));
                    let waited = call.at - (before.at + latency);
                    prop_assert!(call.at >= before.at + latency);
                    prop_assert!((window.min..=window.max).contains(&waited), "{waited} in {window:?}");
                    waited
                }
            };
            last.insert(call.job, (call, waited));
        }
    }

    #[test]
    fn the_target_serves_no_more_than_its_capacity_and_nothing_while_down(
        scenario in scenario(), policy in any_policy(), seed: u64
    ) {
        let target = scenario.target;
        let (run, calls) = run(&scenario, &policy, seed);
        for second in &run.load {
            prop_assert!(second.calls - second.failed <= target.capacity);
        }
        let mut now = Millis::ZERO;
        for call in calls {
            prop_assert!(call.at >= now, "time does not run backwards");
            now = call.at;
            let is_down = call.at >= target.down_at && call.at < target.recovers_at();
            prop_assert_eq!(call.answer == Answer::Down, is_down);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(scenario in scenario(), policy in any_policy(), seed: u64) {
        prop_assert_eq!(run(&scenario, &policy, seed), run(&scenario, &policy, seed));
    }

    #[test]
    fn without_retries_exactly_the_calls_of_the_outage_are_wasted(scenario in scenario(), seed: u64) {
        let target = Target { capacity: u32::MAX, ..scenario.target };
        let (run, calls) = run(&Scenario { target, ..scenario }, &policy("fixed:base=1s,retries=0"), seed);
        let in_outage = calls.iter().filter(|c| c.at >= target.down_at && c.at < target.recovers_at()).count();
        prop_assert_eq!(run.wasted, in_outage as u64);
        prop_assert_eq!(run.given_up() as usize, in_outage);
        prop_assert_eq!(run.calls, u64::from(scenario.jobs));
    }
}

#[test]
fn a_herd_without_jitter_comes_back_as_one() {
    let scenario = Scenario { jobs: 1000, arrival: Millis::ZERO, target: down(100, 0, 5) };
    let (herd, _) = run(&scenario, &policy("fixed:base=8s,retries=9,jitter=none"), 1);
    assert_eq!((herd.peak_after.calls, herd.peak_after.at), (1000, Millis::from_secs(8)));
    // A hundred of the rest are served at 8 s, 16 s, … 72 s; then the retries are used up.
    assert_eq!((herd.succeeded, herd.given_up()), (900, 100));
    assert_eq!(herd.drain, Some(Millis::from_secs(67)));

    let (spread, _) = run(&scenario, &policy("fixed:base=8s,retries=9,jitter=full"), 1);
    assert!(spread.peak_after.calls < 500, "{:?}", spread.peak_after);
    assert_eq!(spread.succeeded, 1000);
}

#[test]
fn the_figures_of_a_small_run_are_those_worked_out_by_hand() {
    // Jobs at 0, 1, 2, 3 s; down from 1 s to 3 s; one call a second; half a second each.
    let target = Target { latency: Millis::new(500), ..down(1, 1, 2) };
    let scenario = Scenario { jobs: 4, arrival: Millis::from_secs(4), target };
    let (run, calls) = run(&scenario, &policy("fixed:base=2s,retries=1,jitter=none"), 1);
    // 0 s served · 1 s and 2 s down · 3 s served · 3.5 s refused, given up · 4.5 s served
    assert_eq!(calls.iter().map(|c| c.at.get()).collect::<Vec<_>>(), [0, 1000, 2000, 3000, 3500, 4500]);
    assert_eq!((run.calls, run.wasted, run.succeeded), (6, 3, 3));
    assert_eq!(run.reasons, [(Reason::Exhausted, 1)]);
    assert_eq!(run.drain, Some(Millis::new(2000)));
    assert_eq!((run.median, run.p99), (Some(Millis::new(500)), Some(Millis::new(3000))));
    assert_eq!((run.peak.calls, run.peak.at), (2, Millis::from_secs(3)));
}

#[test]
fn only_calls_since_the_recovery_make_the_peak_after_it() {
    // A call every 100 ms: in the same second, five find the target down and five find it up.
    let target = Target { down_for: Millis::new(500), ..up(10) };
    let scenario = Scenario { jobs: 10, arrival: Millis::new(1000), target };
    let (run, _) = run(&scenario, &policy("fixed:base=1s,retries=0"), 1);
    assert_eq!((run.peak.calls, run.peak_after.calls), (10, 5));
    assert_eq!(run.drain, None, "nothing that failed was live when the target recovered");
}

#[test]
fn a_policy_may_give_up_on_a_busy_target() {
    let scenario = Scenario { jobs: 5, arrival: Millis::ZERO, target: up(2) };
    let (run, _) = run(&scenario, &policy("fixed:base=1s,retries=3,giveUpOn=RateLimited"), 1);
    assert_eq!((run.succeeded, run.reasons), (2, vec![(Reason::Permanent, 3)]));
}

#[test]
fn a_run_ends_at_its_limit_and_reports_the_unfinished_jobs() {
    let scenario = Scenario { jobs: 7, arrival: Millis::ZERO, target: down(1, 0, MAX_SPAN.get() / 1000) };
    let (run, _) = run(&scenario, &policy("fixed:base=2d,cap=none,retries=9,jitter=none"), 1);
    assert_eq!((run.unfinished, run.calls), (7, 28));
    assert_eq!((run.succeeded, run.given_up(), run.drain), (0, 0, None));
}

fn flow(settings: &serde_json::Value) -> windlass_core::Flow {
    windlass_core::Flow::from_value(settings).unwrap().unwrap()
}

fn outage(jobs: u32, down_for: u64) -> Scenario {
    let target = Target {
        capacity: 200,
        latency: Millis::new(50),
        down_at: Millis::ZERO,
        down_for: Millis::from_secs(down_for),
        retry_after: None,
    };
    Scenario { jobs, arrival: Millis::ZERO, target }
}

#[test]
fn a_breaker_wastes_few_calls_and_charges_nothing_to_jobs_that_wait() {
    let flow = flow(&serde_json::json!({"limits": {"perKey": {"concurrency": 10}}, "breaker": "on"}));
    let p = policy("exponential:base=1s,cap=10s,retries=3,jitter=none");
    let run = simulate_gated(&outage(10_000, 60), &p, &flow, || Roll(0), |_| {});
    let plain = simulate(&outage(10_000, 60), &p, || Roll(0));
    assert!(run.wasted <= 50, "{} calls were wasted", run.wasted);
    assert_eq!((run.given_up(), run.succeeded, run.unfinished), (0, 10_000, 0));
    assert!(plain.given_up() > 9000 && plain.wasted > 10_000, "{plain:?}");
}

#[test]
fn a_rate_is_kept_in_every_second_and_an_open_gate_changes_nothing() {
    let p = policy("exponential:base=1s,cap=10s,retries=30,jitter=none");
    let limited = flow(&serde_json::json!({"limits": {"rate": "100/1s", "burst": 1}}));
    let run = simulate_gated(&outage(3000, 5), &p, &limited, || Roll(0), |_| {});
    assert!(run.load.iter().all(|second| second.calls <= 101));
    assert_eq!(run.unfinished, 0);
    let wide = flow(&serde_json::json!({"limits": {"concurrency": 1_000_000}}));
    assert_eq!(
        simulate_gated(&outage(3000, 5), &p, &wide, || Roll(0), |_| {}),
        simulate(&outage(3000, 5), &p, || Roll(0))
    );
}

#[test]
fn a_retry_after_holds_everybody() {
    let mut scenario = outage(2000, 0);
    scenario.target.retry_after = Some(Millis::from_secs(15));
    let p = policy("http:retries=30");
    let held = flow(&serde_json::json!({"honorRetryAfter": "key"}));
    let run = simulate_gated(&scenario, &p, &held, || Roll(0), |_| {});
    assert_eq!((run.succeeded, run.unfinished), (2000, 0));
    assert!(run.load[1..15].iter().all(|second| second.calls == 0), "{:?}", &run.load[..16]);
}

#[test]
fn a_budget_keeps_retries_below_its_share() {
    let mut scenario = outage(6000, 20);
    scenario.arrival = Millis::from_secs(60);
    let p = policy("fixed:base=1s,retries=1000,jitter=none");
    let budget = flow(&serde_json::json!({"retryBudget": "20%"}));
    let mut calls = (0_u32, 0_u32);
    let run = simulate_gated(
        &scenario,
        &p,
        &budget,
        || Roll(0),
        |call| {
            if call.at < Millis::from_secs(20) {
                if call.retry > 0 { calls.1 += 1 } else { calls.0 += 1 }
            }
        },
    );
    assert!(calls.1 * 4 <= calls.0, "{calls:?}");
    assert_eq!(run.unfinished, 0);
}
