//! What every gate promises, whatever happens to it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use serde_json::json;
use windlass_core::gate::{
    BreakerRule, BreakerState, BudgetRule, Ended, Flow, Gate, GateRule, Hold, HoldOrigin, Limits, Opens, Pass, Rate,
    Refusal, Start, WaitingFor,
};
use windlass_core::{Delivery, Millis, Timestamp, backoff::Ratio};

const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);

#[derive(Debug, Clone)]
enum Step {
    Start(Start),
    /// Ends the attempt that started first.
    End(Ended),
    Hold(u64),
    Release,
}

fn rates() -> impl Strategy<Value = Rate> {
    (1..2000_u32, 1..120_000_u64, 1..50_u32).prop_map(|(count, per, burst)| Rate {
        count,
        per: Millis::new(per),
        burst,
    })
}

fn rules() -> impl Strategy<Value = GateRule> {
    let limits = (proptest::option::of(1..5_u32), proptest::option::of(rates()));
    let breaker = (1..6_u32, 1..1_000_000_u32, 1..60_u64).prop_map(|(minimum, ratio, open)| BreakerRule {
        minimum,
        ratio: Ratio::from_millionths(ratio),
        open_for: Millis::from_secs(open),
        ..BreakerRule::default()
    });
    let budget = (1..1_000_000_u32, 1..3_u32)
        .prop_map(|(share, minimum)| BudgetRule { share: Ratio::from_millionths(share), minimum });
    (limits, proptest::option::of(breaker), proptest::option::of(budget)).prop_map(
        |((concurrency, rate), breaker, budget)| GateRule { limits: Limits { concurrency, rate }, breaker, budget },
    )
}

fn starts() -> impl Strategy<Value = Start> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(is_retry, once, has_others)| Start {
        is_retry,
        delivery: if once { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        has_others,
    })
}

fn ends() -> impl Strategy<Value = Ended> {
    prop_oneof![
        3 => Just(Ended::Succeeded),
        3 => Just(Ended::FailedAtDestination),
        1 => Just(Ended::FailedOtherwise),
        1 => Just(Ended::Lost),
        1 => Just(Ended::Returned),
        1 => Just(Ended::Neutral),
    ]
}

/// What happens, each after so many milliseconds.
fn histories() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        8 => starts().prop_map(Step::Start),
        6 => ends().prop_map(Step::End),
        1 => (1..100_000_u64).prop_map(Step::Hold),
        1 => Just(Step::Release),
    ];
    proptest::collection::vec((prop_oneof![3 => 0..200_u64, 1 => 0..40_000_u64], step), 1..300)
}

/// Runs a history and looks at the gate after every step.
fn play(
    rule: &GateRule,
    history: &[(u64, Step)],
    mut look: impl FnMut(&Gate, Timestamp, Option<Result<Pass, Refusal>>),
) -> (Gate, Vec<Pass>, Timestamp) {
    let (mut gate, mut running, mut now) = (Gate::default(), Vec::<Pass>::new(), NOON);
    for (later, step) in history {
        now = now + Millis::new(*later);
        let mut answer = None;
        match step {
            Step::Start(start) => {
                let checked = gate.check(rule, *start, now);
                if let Ok(pass) = checked {
                    gate.start(rule, *start, pass, now);
                    running.push(pass);
                }
                answer = Some(checked);
            }
            Step::End(ended) if !running.is_empty() => gate.end(rule, running.remove(0), *ended, now),
            Step::End(_) => {}
            Step::Hold(span) => {
                let until = now + Millis::new(*span);
                gate.hold(Hold { since: now, until, origin: HoldOrigin::Rule, reason: "busy".into() });
            }
            Step::Release => gate.release(now),
        }
        assert_eq!(gate.in_use() as usize, running.len());
        look(&gate, now, answer);
    }
    (gate, running, now)
}

proptest! {
    #[test]
    fn never_more_in_use_than_allowed(rule in rules(), history in histories()) {
        play(&rule, &history, |gate, _, _| {
            assert!(rule.limits.concurrency.is_none_or(|most| gate.in_use() <= most));
        });
    }

    #[test]
    fn in_no_stretch_more_starts_than_the_rate_and_its_burst(rate in rates(), gaps in proptest::collection::vec(0..3000_u64, 1..200)) {
        let rule = GateRule { limits: Limits { concurrency: None, rate: Some(rate) }, ..GateRule::default() };
        let (mut gate, mut now, mut started) = (Gate::default(), NOON, Vec::new());
        for gap in gaps {
            now = now + Millis::new(gap);
            while started.len() < 300 && gate.check(&rule, Start::FIRST, now).is_ok() {
                gate.start(&rule, Start::FIRST, Pass::default(), now);
                started.push(now);
            }
        }
        for (i, from) in started.iter().enumerate() {
            for (j, to) in started.iter().enumerate().skip(i) {
                let span = u128::from(to.since(*from).get());
                let allowed = span * u128::from(rate.count) / u128::from(rate.per.get()) + u128::from(rate.burst);
                prop_assert!((j - i + 1) as u128 <= allowed, "{} starts in {span} ms", j - i + 1);
            }
        }
    }

    #[test]
    fn a_refusal_says_when_to_ask_again_or_something_in_use_will_end(rule in rules(), history in histories()) {
        play(&rule, &history, |gate, now, answer| match answer {
            Some(Err(Refusal { until: Some(until), .. })) => assert!(until > now, "{gate:?}"),
            Some(Err(Refusal { until: None, .. })) => assert!(gate.in_use() > 0, "{gate:?}"),
            Some(Ok(_)) | None => {}
        });
    }

    #[test]
    fn whatever_waits_starts_in_the_end(rule in rules(), history in histories(), start in starts()) {
        let (mut gate, running, mut now) = play(&rule, &history, |_, _, _| {});
        for pass in running {
            gate.end(&rule, pass, Ended::Succeeded, now);
        }
        let start = Start { has_others: false, ..start };
        for _ in 0..100 {
            match gate.opens_to(&rule, start, now) {
                Opens::Now => return Ok(()),
                Opens::At(at) => now = at,
                Opens::OnEvent => prop_assert!(false, "nothing is in use: {gate:?}"),
            }
        }
        prop_assert!(false, "still waiting: {gate:?}");
    }

    #[test]
    fn as_many_start_as_there_is_room_for(rule in rules(), history in histories()) {
        let (mut gate, _, now) = play(&rule, &history, |_, _, _| {});
        let room = gate.room(&rule, now);
        let mut started = 0;
        while started < room.min(200) {
            let pass = gate.check(&rule, Start::FIRST, now).unwrap();
            gate.start(&rule, Start::FIRST, pass, now);
            started += 1;
        }
        prop_assert!(started == 200 || gate.check(&rule, Start::FIRST, now).is_err());
    }

    #[test]
    fn the_text_reads_back(rule in rules(), history in histories()) {
        play(&rule, &history, |gate, _, _| {
            assert_eq!(Gate::from_text(&gate.to_text(), gate.in_use()).as_ref(), Ok(gate));
        });
    }

    #[test]
    fn a_gate_that_only_counts_stays_plain(most in 1_u32..5, history in histories()) {
        let rule = GateRule { limits: Limits { concurrency: Some(most), rate: None }, ..GateRule::default() };
        let history: Vec<_> = history.into_iter().filter(|(_, step)| !matches!(step, Step::Hold(_))).collect();
        prop_assert!(rule.counts_only());
        play(&rule, &history, |gate, _, _| {
            assert!(gate.is_plain());
            assert_eq!(gate.to_text(), Gate::PLAIN);
        });
    }

    #[test]
    fn a_closed_breaker_and_a_budget_delay_no_first_attempt(rule in rules(), history in histories()) {
        let plain = GateRule { limits: rule.limits, ..GateRule::default() };
        let history: Vec<_> = history.into_iter().filter(|(_, step)| !matches!(step, Step::Hold(_))).map(|(later, step)| match step {
            Step::End(Ended::FailedAtDestination) => (later, Step::End(Ended::Succeeded)),
            Step::Start(start) => (later, Step::Start(Start { is_retry: false, ..start })),
            Step::End(_) | Step::Hold(_) | Step::Release => (later, step),
        }).collect();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        play(&rule, &history, |_, _, answer| with.push(answer));
        play(&plain, &history, |_, _, answer| without.push(answer));
        prop_assert_eq!(with, without);
    }

    #[test]
    fn retries_stay_within_their_budget(share in 1..1_000_000_u32, minimum in 1..3_u32, history in histories()) {
        let budget = BudgetRule { share: Ratio::from_millionths(share), minimum };
        let rule = GateRule { budget: Some(budget), ..GateRule::default() };
        let history: Vec<_> = history.into_iter().filter(|(_, step)| matches!(step, Step::Start(_))).collect();
        let mut started: Vec<(Timestamp, bool)> = Vec::new();
        let mut steps = history.iter();
        play(&rule, &history, |_, now, answer| {
            let Some((_, Step::Start(start))) = steps.next() else { return };
            match answer {
                Some(Ok(_)) => started.push((now, start.is_retry)),
                refused => assert!(start.is_retry, "a first attempt never waits: {refused:?}"),
            }
            // Over ten seconds. The first attempts of the second before count too: slices are whole seconds.
            let over = |secs, retry| started.iter().filter(|(at, r)| *r == retry && now.since(*at) < Millis::from_secs(secs)).count();
            let allowed = (over(11, false) as u64 * u64::from(share) / 1_000_000).max(u64::from(minimum) * 10);
            if start.is_retry && answer.is_some_and(|a| a.is_ok()) {
                assert!(over(10, true) as u64 <= allowed);
            }
        });
    }

    #[test]
    fn one_probe_at_a_time(rule in rules(), history in histories()) {
        let mut probing = false;
        play(&rule, &history, |gate, now, answer| {
            if let Some(Ok(Pass { is_probe: true })) = answer {
                assert!(!probing, "two probes at once: {gate:?}");
            }
            probing = gate.breaker(now) == BreakerState::Probing;
        });
    }

    #[test]
    fn a_clock_that_goes_backwards_is_harmless(rule in rules(), history in histories(), back in 0..100_000_000_u64) {
        let (mut gate, running, now) = play(&rule, &history, |_, _, _| {});
        let mut now = now - Millis::new(back);
        for pass in running {
            gate.end(&rule, pass, Ended::Succeeded, now);
        }
        // An hour covers every automatic wait here: the longest is the breaker's ten minutes.
        let limit = now + Millis::from_secs(3600);
        while now < limit {
            match gate.opens(&rule, now) {
                Opens::Now => return Ok(()),
                Opens::At(at) => now = at,
                Opens::OnEvent => prop_assert!(false, "nothing is in use: {gate:?}"),
            }
        }
        prop_assert!(false, "still waiting: {gate:?}");
    }

    #[test]
    fn a_quiet_gate_is_forgotten(rule in rules(), history in histories()) {
        let (mut gate, running, now) = play(&rule, &history, |_, _, _| {});
        for pass in running {
            gate.end(&rule, pass, Ended::Neutral, now);
        }
        prop_assert!(gate.is_idle(now + Millis::from_secs(3 * 86_400)), "{gate:?}");
    }

    #[test]
    fn settings_read_back_from_their_json(queue in rules(), per_key in rules()) {
        let flow = Flow {
            queue: GateRule { breaker: None, ..queue },
            per_key: GateRule { budget: None, ..per_key },
            ..Flow::default()
        };
        let value = flow.to_value();
        let read = Flow::from_value(&value).unwrap();
        prop_assert_eq!(read.unwrap_or_default(), flow, "{}", value);
    }
}

#[test]
fn an_outage_wastes_few_calls_and_comes_back_slowly() {
    let flow = Flow::from_value(&json!({"limits": {"perKey": {"concurrency": 10}}, "breaker": "on"})).unwrap().unwrap();
    let (rule, mut gate) = (flow.per_key, Gate::default());
    let (mut wasted, mut served, mut now) = (0, Vec::new(), NOON);
    while now < NOON + Millis::from_secs(240) {
        let is_down = now < NOON + Millis::from_secs(60);
        let mut passes = Vec::new();
        while let Ok(pass) = gate.check(&rule, Start::FIRST, now) {
            gate.start(&rule, Start::FIRST, pass, now);
            passes.push(pass);
        }
        for pass in passes {
            gate.end(&rule, pass, if is_down { Ended::FailedAtDestination } else { Ended::Succeeded }, now);
            if is_down { wasted += 1 } else { served.push(now) }
        }
        now = now + Millis::new(100);
    }
    assert!(wasted <= 50, "{wasted} calls during the outage");
    let first = served[0];
    let in_second = |n: u64| served.iter().filter(|at| at.since(first).get() / 1000 == n).count();
    assert!(in_second(0) <= 2 && in_second(1) <= 2 && in_second(2) <= 4, "a slow start");
    assert_eq!(gate.check(&rule, Start::FIRST, now).map(|pass| pass.is_probe), Ok(false));
    assert_eq!(WaitingFor::ALL.len(), 9);
}
