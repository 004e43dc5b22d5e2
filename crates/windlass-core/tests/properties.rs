//! Properties of every policy, job, outcome, time and roll. Failing cases print the seed that repeats them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use serde_json::json;
use windlass_core::backoff::Ratio;
use windlass_core::decide::Progress;
use windlass_core::policy::{Bound, MAX_RETRIES, Partial, Pattern, Policy, no_names};
use windlass_core::{
    Advice, Backoff, Delivery, Failure, Jitter, LiveRules, Millis, Next, Outcome, Roll, Rule, Running, Timestamp,
    decide, explain, preview,
};

/// Mostly common spans, sometimes extreme ones.
fn span() -> impl Strategy<Value = Millis> {
    prop_oneof![4 => 0..10_000_000_u64, 1 => Just(0), 1 => 0..=Millis::MAX.get()].prop_map(Millis::new)
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        (0..=1_000_000_u32).prop_map(|f| Jitter::Spread(Ratio::from_millionths(f))),
        (0..=10_000_000_u32).prop_map(|f| Jitter::Additive(Ratio::from_millionths(f))),
    ]
}

fn backoff() -> impl Strategy<Value = Backoff> {
    let factor = prop_oneof![Just(2_000_000), 1_000_000..3_000_000_u32, 1_000_000..=1_000_000_000_u32];
    prop_oneof![
        (span(), factor).prop_map(|(base, f)| Backoff::Exponential { base, factor: Ratio::from_millionths(f) }),
        span().prop_map(|base| Backoff::Linear { base }),
        span().prop_map(|base| Backoff::Fixed { base }),
        span().prop_map(|base| Backoff::Fibonacci { base }),
        prop::collection::vec(span(), 1..20).prop_map(Backoff::Steps),
    ]
}

fn patterns() -> impl Strategy<Value = Vec<Pattern>> {
    let pattern = prop_oneof![
        "[A-Za-z_][A-Za-z0-9_.:<>-]{0,20}".prop_filter_map("a class", |t| Pattern::parse(&t)),
        (100..600_u16).prop_map(Pattern::Status),
        (1..=5_u16).prop_map(Pattern::Hundred),
    ];
    prop::collection::vec(pattern, 0..4)
}

/// Rules with texts that are hard to write in a line.
fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = prop_oneof![
        ("[A-Za-z*:<>.-]{1,20}", span()).prop_map(|(class, ms)| {
            let ms = ms.get().clamp(1, 86_400_000);
            json!({"match": {"class": class}, "then": "snooze", "for": ms})
        }),
        "[a-z ,:=\"']{1,20}".prop_map(|text| json!({"match": {"message": format!("/{text}/i")}, "then": "discard"})),
        (100..600_u16)
            .prop_map(|s| json!({"match": {"status": s}, "then": "retry", "policy": "steps:1s/2s,retries=1"})),
        (1..=5_u16).prop_map(|h| json!({"match": {"status": format!("{h}xx")}, "then": "hold", "for": "30s"})),
    ];
    let lists = prop::collection::vec(rule, 0..4);
    prop_oneof![2 => Just(vec![]), 1 => lists]
        .prop_map(|list| Rule::list_from_value("/rules", &serde_json::Value::Array(list), &no_names).unwrap())
}

fn policy() -> impl Strategy<Value = Policy> {
    let limits = (prop::option::of(span()), prop::option::of(span()), span());
    let counts = (0..=MAX_RETRIES, 1..=MAX_RETRIES);
    (backoff(), jitter(), limits, counts, patterns(), prop::option::of(patterns()), rules()).prop_map(
        |(backoff, jitter, limits, counts, give_up_on, retry_on, rules)| Policy {
            backoff,
            max_delay: limits.0,
            jitter,
            max_retries: counts.0,
            max_elapsed: limits.1,
            max_crashes: counts.1,
            give_up_on,
            retry_on,
            max_retry_after: limits.2,
            rules,
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let advice = prop_oneof![
        Just(Advice::None),
        Just(Advice::Permanent),
        span().prop_map(Advice::RetryAfter),
        span().prop_map(Advice::RetryIn),
    ];
    prop_oneof![
        Just(Outcome::Succeeded),
        (".{0,10}", prop::option::of(any::<u16>()), advice).prop_map(|(class, status, advice)| {
            Outcome::Failed(Failure { class, message: String::new(), status, advice, trace: None })
        }),
        span().prop_map(Outcome::Snoozed),
        Just(Outcome::Released(Progress::Started)),
        Just(Outcome::Released(Progress::NotStarted)),
        Just(Outcome::Cancelled),
        Just(Outcome::Lost),
    ]
}

fn retryable(policy: Policy) -> Policy {
    Policy { give_up_on: vec![], rules: vec![], retry_on: None, max_elapsed: None, max_retries: MAX_RETRIES, ..policy }
}

fn failing(policy: &Policy, failures: u32, previous_delay: Millis) -> Running<'_> {
    Running {
        failures,
        crashes: 0,
        first_attempt_at: Timestamp::EPOCH,
        previous_delay,
        delivery: Delivery::AtLeastOnce,
        cancel_requested: false,
        is_probe: false,
        policy,
        rules: LiveRules::default(),
    }
}

fn delay_of(job: &Running<'_>, roll: Roll) -> Millis {
    let step = decide(job, &Outcome::Failed(Failure::new("no")), Timestamp::EPOCH, roll);
    step.next.wait().expect("a retryable failure is retried").1
}

/// The width of the window without a cap.
fn natural_width(policy: &Policy, n: u32) -> u128 {
    let d = u128::from(policy.delay(n).get());
    let share = |f: Ratio| d * u128::from(f.millionths()) / 1_000_000;
    match policy.jitter {
        Jitter::None | Jitter::Decorrelated => 0,
        Jitter::Full => d,
        Jitter::Equal => d - d / 2,
        Jitter::Spread(f) => 2 * share(f),
        Jitter::Additive(f) => share(f),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_delay_lies_in_its_window_and_never_passes_the_cap(
        p in policy(), n in 1..=MAX_RETRIES, previous in span(), roll: u64,
    ) {
        let p = retryable(p);
        let window = p.window(n, previous);
        let delay = delay_of(&failing(&p, n - 1, previous), Roll(roll));
        prop_assert!(window.min <= delay && delay <= window.max);
        prop_assert!(delay <= p.max_delay.unwrap_or(Millis::MAX));
        prop_assert!(window.max <= p.max_delay.unwrap_or(Millis::MAX));
    }

    #[test]
    fn the_ends_of_the_window_are_reached(p in policy(), n in 1..=MAX_RETRIES, previous in span()) {
        let p = retryable(p);
        let window = p.window(n, previous);
        let job = failing(&p, n - 1, previous);
        prop_assert_eq!(delay_of(&job, Roll(0)), window.min);
        prop_assert_eq!(delay_of(&job, Roll(u64::MAX)), window.max);
    }

    #[test]
    fn the_windows_width_is_kept_at_the_cap(p in policy(), n in 1..=MAX_RETRIES) {
        if p.jitter == Jitter::Decorrelated {
            return Ok(());
        }
        let cap = u128::from(p.max_delay.unwrap_or(Millis::MAX).get());
        let kept = natural_width(&p, n).min(cap);
        prop_assert_eq!(u128::from(p.window(n, Millis::ZERO).width()), kept);
    }

    #[test]
    fn the_preview_matches_the_decision(p in policy(), roll: u64) {
        let p = retryable(p);
        let mut previous = Millis::ZERO;
        let mut total = Millis::ZERO;
        for shown in preview(&p, 40).delays {
            // After the longest delay, decorrelated jitter has its widest next window.
            let job = failing(&p, shown.retry - 1, previous);
            prop_assert_eq!(delay_of(&job, Roll(0)), shown.window.min);
            prop_assert_eq!(delay_of(&job, Roll(u64::MAX)), shown.window.max);
            let any = delay_of(&job, Roll(roll));
            prop_assert!(shown.window.min <= any && any <= shown.window.max);
            total = total + shown.delay;
            prop_assert_eq!(shown.total, total);
            previous = shown.window.max;
        }
    }

    #[test]
    fn a_policy_reads_back_from_its_line_and_its_object(p in policy()) {
        let line = p.to_string();
        prop_assert_eq!(Policy::parse_canonical(&line), Ok(p.clone()), "{}", line);
        let object = p.to_json();
        let level = Partial::from_json(&object, &no_names).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(Partial::resolve(&[level], &[]), Ok(p), "{}", object);
    }

    #[test]
    fn the_nearest_level_that_sets_a_field_decides(
        retries in prop::collection::vec(prop::option::of(0..=MAX_RETRIES), 1..6),
        caps in prop::collection::vec(prop::option::of(prop::option::of(span())), 1..6),
    ) {
        let count = retries.len().max(caps.len());
        let mut levels: Vec<Partial> = (0..count).map(|i| Partial {
            max_retries: retries.get(i).copied().flatten(),
            max_delay: caps.get(i).copied().flatten().map(Bound::from),
            ..Partial::default()
        }).collect();
        levels.push(Partial::parse_line("http").unwrap());
        let p = Partial::resolve(&levels, &[]).unwrap();
        prop_assert_eq!(p.max_retries, retries.iter().flatten().next().copied().unwrap_or(3));
        let cap = caps.iter().flatten().next().copied().unwrap_or(Some(Millis::from_secs(300)));
        prop_assert_eq!(p.max_delay, cap);
        // Merging two neighbouring levels first changes nothing.
        let merged = levels[0].clone().over(&levels[1]);
        let shorter: Vec<Partial> = std::iter::once(merged).chain(levels[2..].iter().cloned()).collect();
        prop_assert_eq!(Partial::resolve(&shorter, &[]), Ok(p));
    }

    #[test]
    fn the_decision_is_total_and_keeps_its_promises(
        p in policy(), outcome in outcome(), failures: u32, crashes: u32, first in 0..=Timestamp::MAX.as_millis(),
        previous in span(), once: bool, cancel: bool, probe: bool, now in 0..=Timestamp::MAX.as_millis(), roll: u64,
    ) {
        let job = Running {
            failures, crashes, first_attempt_at: Timestamp::from_millis(first), previous_delay: previous,
            delivery: if once { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
            cancel_requested: cancel, is_probe: probe, policy: &p, rules: LiveRules::default(),
        };
        let now = Timestamp::from_millis(now);
        let step = decide(&job, &outcome, now, Roll(roll));
        let _ = step.why.to_string();
        if let Next::Wait { due_at, .. } = step.next {
            prop_assert!(due_at >= now);
            prop_assert!(!cancel);
            prop_assert!(!once || matches!(outcome, Outcome::Released(Progress::NotStarted)));
            prop_assert!(step.failures == failures || step.failures <= p.max_retries);
        }
        prop_assert!(step.failures == failures || step.failures == failures.saturating_add(1));
    }

    #[test]
    fn any_text_is_a_policy_or_an_error_within_it(text in ".{0,60}") {
        if let Err(error) = Partial::parse_line(&text) {
            let position = error.position.expect("errors of a line have a position");
            prop_assert!(position <= text.len() && text.is_char_boundary(position));
        }
    }

    #[test]
    fn lines_that_are_nearly_right_never_panic(
        head in "(exponential|steps|stepped|fixed|once|x)", items in prop::collection::vec("[a-zA-Z]{0,9}=?[0-9a-z/|().]{0,8}", 0..4),
    ) {
        let text = format!("{head}:{}", items.join(","));
        if let Ok(level) = Partial::parse_line(&text) {
            let p = Partial::resolve(&[level], &[]).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
            prop_assert!(!explain(&p).is_empty());
        }
    }
}
