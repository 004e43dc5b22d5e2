#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use serde_json::json;
use std::borrow::Cow;

const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);

fn secs(s: u64) -> Timestamp {
    NOON + Millis::from_secs(s)
}

fn rule(settings: &serde_json::Value) -> Flow {
    Flow::from_value(settings).unwrap().unwrap()
}

fn start(gate: &mut Gate, rule: &GateRule, at: Timestamp) -> Result<Pass, Refusal> {
    let pass = gate.check(rule, Start::FIRST, at)?;
    gate.start(rule, Start::FIRST, pass, at);
    Ok(pass)
}

fn waits(waiting_for: WaitingFor, until: Option<Timestamp>) -> Result<Pass, Refusal> {
    Err(Refusal { waiting_for, until })
}

#[test]
fn concurrency_counts_what_is_in_use() {
    let rule = rule(&json!({"limits": {"concurrency": 2}})).queue;
    let mut gate = Gate::default();
    assert_eq!(gate.room(&rule, NOON), 2);
    let pass = start(&mut gate, &rule, NOON).unwrap();
    start(&mut gate, &rule, NOON).unwrap();
    assert_eq!(start(&mut gate, &rule, NOON), waits(WaitingFor::Concurrency, None));
    assert_eq!(gate.opens(&rule, NOON), Opens::OnEvent);
    gate.end(&rule, pass, Ended::Lost, NOON);
    assert_eq!(gate.in_use(), 1);
    start(&mut gate, &rule, NOON).unwrap();
}

#[test]
fn a_rate_starts_its_burst_and_then_one_per_interval() {
    let rule = rule(&json!({"limits": {"rate": "120/1m", "burst": 2}})).queue;
    let mut gate = Gate::default();
    start(&mut gate, &rule, NOON).unwrap();
    start(&mut gate, &rule, NOON).unwrap();
    let next = NOON + Millis::new(500);
    assert_eq!(start(&mut gate, &rule, NOON), waits(WaitingFor::Rate, Some(next)));
    assert_eq!(gate.opens(&rule, NOON), Opens::At(next));
    let pass = start(&mut gate, &rule, next).unwrap();
    assert!(start(&mut gate, &rule, next).is_err());
    gate.end(&rule, pass, Ended::Returned, next);
    start(&mut gate, &rule, next).expect("its token came back");
    assert!(gate.is_idle(secs(10)) || gate.in_use() > 0);
}

#[test]
fn a_hold_ends_with_a_slow_start() {
    let rule = GateRule::default();
    let mut gate = Gate::default();
    let hold = |until| Hold { since: NOON, until, origin: HoldOrigin::RetryAfter, reason: "429".into() };
    gate.hold(hold(secs(30)));
    gate.hold(hold(secs(20)));
    gate.end(&rule, Pass::default(), Ended::Succeeded, NOON);
    assert_eq!(start(&mut gate, &rule, secs(29)), waits(WaitingFor::Hold, Some(secs(30))));
    start(&mut gate, &rule, secs(30)).unwrap();
    assert_eq!(start(&mut gate, &rule, secs(30)), waits(WaitingFor::Hold, Some(secs(31))));
    for allowed in [2, 4, 8] {
        let now = secs(30) + Millis::from_secs(u64::from(u32::ilog2(allowed)));
        assert_eq!(gate.room(&rule, now), allowed);
        for _ in 0..allowed {
            start(&mut gate, &rule, now).unwrap();
        }
        assert!(start(&mut gate, &rule, now).is_err());
    }
    assert_eq!(gate.room(&rule, secs(90)), u32::MAX);
}

#[test]
fn an_operator_shortens_a_hold_and_releases_it() {
    let mut gate = Gate::default();
    let by = |until| Hold { since: NOON, until, origin: HoldOrigin::Operator("ana".into()), reason: String::new() };
    gate.hold(by(secs(600)));
    gate.hold(by(secs(10)));
    assert_eq!(gate.held(NOON).unwrap().until, secs(10));
    gate.release(secs(5));
    assert_eq!(gate.held(secs(5)), None);
    assert_eq!(gate.room(&GateRule::default(), secs(5)), 1);
}

/// Ends `n` attempts like this, one after the other.
fn run(gate: &mut Gate, rule: &GateRule, n: u32, ended: Ended, now: Timestamp) {
    for _ in 0..n {
        let pass = start(gate, rule, now).unwrap();
        gate.end(rule, pass, ended, now);
    }
}

#[test]
fn a_breaker_opens_probes_and_closes() {
    let rule = rule(&json!({"breaker": "on"})).per_key;
    let mut gate = Gate::default();
    run(&mut gate, &rule, 10, Ended::FailedAtDestination, NOON);
    assert_eq!(gate.breaker(NOON), BreakerState::Open { until: secs(30) });
    assert_eq!(start(&mut gate, &rule, secs(29)), waits(WaitingFor::Breaker, Some(secs(30))));

    let probe = start(&mut gate, &rule, secs(30)).unwrap();
    assert!(probe.is_probe);
    assert_eq!(start(&mut gate, &rule, secs(30)), waits(WaitingFor::Breaker, None));
    gate.end(&rule, probe, Ended::FailedAtDestination, secs(31));
    assert_eq!(gate.breaker(secs(31)), BreakerState::Open { until: secs(91) });

    let probe = start(&mut gate, &rule, secs(91)).unwrap();
    gate.end(&rule, probe, Ended::Succeeded, secs(92));
    assert_eq!(gate.breaker(secs(92)), BreakerState::Closed);
    assert_eq!(gate.room(&rule, secs(92)), 1);
    assert_eq!(gate.room(&rule, secs(152)), u32::MAX);
}

#[test]
fn a_breaker_opens_by_share_and_not_below_it() {
    let rule = rule(&json!({"breaker": {"minimum": 4, "ratio": "50%"}})).per_key;
    let mut gate = Gate::default();
    run(&mut gate, &rule, 3, Ended::Succeeded, NOON);
    run(&mut gate, &rule, 2, Ended::FailedAtDestination, NOON);
    run(&mut gate, &rule, 5, Ended::FailedOtherwise, NOON);
    assert_eq!(gate.breaker(NOON), BreakerState::Closed);
    // What failed more than a window ago no longer counts.
    run(&mut gate, &rule, 3, Ended::FailedAtDestination, secs(80));
    assert_eq!(gate.breaker(secs(80)), BreakerState::Closed);
    run(&mut gate, &rule, 1, Ended::FailedAtDestination, secs(80));
    assert_eq!(gate.breaker(secs(80)), BreakerState::Open { until: secs(110) });
}

#[test]
fn a_lost_probe_makes_room_for_the_next() {
    let rule = rule(&json!({"breaker": {"minimum": 1}})).per_key;
    let mut gate = Gate::default();
    run(&mut gate, &rule, 1, Ended::FailedAtDestination, NOON);
    for ended in [Ended::Lost, Ended::Returned, Ended::Neutral] {
        let probe = start(&mut gate, &rule, secs(30)).unwrap();
        gate.end(&rule, probe, ended, secs(40));
        assert_eq!(gate.breaker(secs(40)), BreakerState::HalfOpen);
    }
}

#[test]
fn an_at_most_once_job_probes_only_if_nothing_else_waits() {
    let rule = rule(&json!({"breaker": {"minimum": 1}})).per_key;
    let mut gate = Gate::default();
    run(&mut gate, &rule, 1, Ended::FailedAtDestination, NOON);
    let once = Start { delivery: Delivery::AtMostOnce, has_others: true, is_retry: false };
    assert_eq!(gate.check(&rule, once, secs(30)), waits(WaitingFor::Breaker, Some(secs(31))));
    assert_eq!(gate.check(&rule, Start { has_others: false, ..once }, secs(30)), Ok(Pass { is_probe: true }));
}

#[test]
fn a_budget_delays_retries_and_never_first_attempts() {
    let rule = rule(&json!({"retryBudget": "20%"})).queue;
    let mut gate = Gate::default();
    let retry = Start { is_retry: true, ..Start::FIRST };
    for _ in 0..100 {
        start(&mut gate, &rule, NOON).unwrap();
    }
    for _ in 0..20 {
        let pass = gate.check(&rule, retry, NOON).unwrap();
        gate.start(&rule, retry, pass, NOON);
    }
    assert_eq!(gate.check(&rule, retry, NOON), waits(WaitingFor::Budget, Some(secs(11))));
    start(&mut gate, &rule, NOON).unwrap();
    assert!(gate.check(&rule, retry, secs(11)).is_ok());
}

#[test]
fn a_clock_set_back_stops_nothing_for_long() {
    let rule = GateRule {
        limits: Limits { concurrency: None, rate: Rate::parse("1/1s") },
        ..rule(&json!({"breaker": {"minimum": 1}})).per_key
    };
    let mut gate = Gate::default();
    run(&mut gate, &rule, 1, Ended::FailedAtDestination, secs(7200));
    let hold = Hold { since: secs(7200), until: secs(7300), origin: HoldOrigin::Rule, reason: String::new() };
    gate.hold(hold);
    let probe = gate.check(&rule, Start::FIRST, secs(1));
    assert_eq!(probe, Ok(Pass { is_probe: true }), "{gate:?}");
}

#[test]
fn settings_read_back_and_name_the_wrong_field() {
    for settings in [
        json!({"limits": {"concurrency": 10, "rate": "100/1m", "burst": 5, "keyBy": "tenant", "across": "all"}}),
        json!({"limits": {"perKey": {"concurrency": 3, "rate": "10/1s", "burst": 10}}, "breaker": "on"}),
        json!({"breaker": {"window": "30s", "minimum": 5, "ratio": "12.5%", "openFor": "10s", "maxOpenFor": "1m"}}),
        json!({"retryBudget": "20%", "honorRetryAfter": "job", "maxHold": "1h"}),
        json!({"retryBudget": {"share": "33.3%", "minimum": 5}}),
    ] {
        assert_eq!(rule(&settings).to_value(), settings);
    }
    for (settings, pointer) in [
        (json!({"limits": 3}), "/limits"),
        (json!({"limits": {"concurency": 3}}), "/limits/concurency"),
        (json!({"limits": {"concurrency": 0}}), "/limits/concurrency"),
        (json!({"limits": {"concurrency": "3"}}), "/limits/concurrency"),
        (json!({"limits": {"rate": "0/1s"}}), "/limits/rate"),
        (json!({"limits": {"rate": "1/0s"}}), "/limits/rate"),
        (json!({"limits": {"rate": "1/2d"}}), "/limits/rate"),
        (json!({"limits": {"burst": 3}}), "/limits/burst"),
        (json!({"limits": {"perKey": {"rate": 3}}}), "/limits/perKey/rate"),
        (json!({"limits": {"keyBy": "ip"}}), "/limits/keyBy"),
        (json!({"limits": {"across": "some"}}), "/limits/across"),
        (json!({"breaker": true}), "/breaker"),
        (json!({"breaker": {"ratio": 2}}), "/breaker/ratio"),
        (json!({"breaker": {"openFor": "2h", "maxOpenFor": "1h"}}), "/breaker/maxOpenFor"),
        (json!({"retryBudget": "0%"}), "/retryBudget"),
        (json!({"retryBudget": {}}), "/retryBudget/share"),
        (json!({"honorRetryAfter": "all"}), "/honorRetryAfter"),
        (json!({"maxHold": "0s"}), "/maxHold"),
    ] {
        let error = Flow::from_value(&settings).unwrap_err();
        assert_eq!(error.pointer, pointer, "{settings}: {error}");
    }
    assert_eq!(Flow::from_value(&json!({"policy": "stepped", "limits": null})), Ok(None));
}

#[test]
fn a_rate_has_one_second_of_burst() {
    for (text, burst) in [("100/1m", 1), ("600/1m", 10), ("5/s", 5), ("1/1d", 1), ("1000000/1s", 100_000)] {
        assert_eq!(Rate::parse(text).unwrap().burst, burst, "{text}");
    }
    for text in ["", "5", "5/", "/s", "-5/s", "5/1x", "1000001/s", "5/25h", "5/s/s", "+5/s"] {
        assert_eq!(Rate::parse(text), None, "{text}");
    }
}

#[test]
fn a_destination_is_scheme_host_and_port() {
    for (url, expected) in [
        ("https://Example.com/a?b", Some("https://example.com:443")),
        ("http://user:secret@example.com:8080", Some("http://example.com:8080")),
        ("http://[::1]:81/x", Some("http://[::1]:81")),
        ("http://[::1]", Some("http://[::1]:80")),
        ("ftp://example.com", None),
        ("https:///path", None),
        ("nonsense", None),
    ] {
        assert_eq!(destination(url).as_deref(), expected, "{url}");
    }
}

#[test]
fn the_key_of_a_job_follows_the_settings() {
    let flow = |by| rule(&json!({"limits": {"perKey": {"concurrency": 1}, "keyBy": by}}));
    let key = |by, own, to| flow(by).key_of("acme", own, to).map(Cow::into_owned);
    assert_eq!(key("limitKey", Some("k"), Some("d")).as_deref(), Some("k"));
    assert_eq!(key("limitKey", None, Some("d")).as_deref(), Some("d"));
    assert_eq!(key("limitKey", None, None), None);
    assert_eq!(key("tenant", Some("k"), None).as_deref(), Some("acme"));
    assert_eq!(key("destination", Some("k"), Some("d")).as_deref(), Some("d"));
    assert_eq!(key("destination", Some("k"), None), None);
}

#[test]
fn nonsense_is_not_a_gate() {
    for text in
        ["", "[]", "3", "{", r#"{"failedInARow":-1}"#, r#"{"rate":[1]}"#, r#"{"ended":[0,1]}"#, r#"{"open":[1,2]}"#]
    {
        assert!(Gate::from_text(text, 0).is_err(), "{text}");
    }
    assert_eq!(Gate::from_text("{}", 0), Ok(Gate::default()));
    assert_eq!(Gate::default().to_text(), "{}");
}
