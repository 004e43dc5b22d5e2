//! The meaning of objects, and the errors for wrong ones.

use super::*;
use crate::jitter::Jitter;
use crate::policy::{PRESETS, Role, no_names};
use crate::time::Millis;

fn level(value: &Value) -> Partial {
    Partial::from_json(value, &no_names).unwrap_or_else(|e| panic!("{value}: {e}"))
}

fn line(text: &str) -> Partial {
    Partial::parse_line(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refusal(value: &Value) -> PolicyError {
    Partial::from_json(value, &no_names).expect_err(&value.to_string())
}

#[test]
fn a_string_is_a_name_or_a_line() {
    assert_eq!(level(&json!("stepped")), line("stepped"));
    assert_eq!(level(&json!("http:retries=5")), line("http:retries=5"));
}

#[test]
fn an_object_sets_only_the_fields_it_names() {
    assert_eq!(level(&json!({})), Partial::default());
    assert_eq!(level(&json!({"maxRetries": 5})), Partial { max_retries: Some(5), ..Partial::default() });
    assert_eq!(level(&json!({"maxAttempts": 6})), Partial { max_retries: Some(5), ..Partial::default() });
    assert_eq!(level(&json!({"maxAttempts": 6, "maxRetries": 5})), level(&json!({"maxRetries": 5})));
}

#[test]
fn a_named_policy_sets_all_fields_that_the_object_does_not_name() {
    assert_eq!(level(&json!({"policy": "stepped", "maxRetries": 5})), line("stepped:retries=5"));
    assert_eq!(level(&json!({"policy": "http", "base": 250, "maxDelay": "1m"})), line("http:base=250ms,cap=1m"));
}

#[test]
fn every_field_can_be_given() {
    let all = level(&json!({
        "strategy": "exponential", "base": "1s", "factor": 1.5, "maxDelay": null, "jitter": "spread(0.2)",
        "maxRetries": 4, "maxElapsed": "2h", "maxCrashes": 2, "giveUpOn": ["A", 404, "5xx"], "retryOn": "B|C",
        "maxRetryAfter": 0,
    }));
    let same = line(
        "exponential:base=1s,factor=1.5,cap=none,jitter=spread(0.2),retries=4,maxElapsed=2h,maxCrashes=2,\
         giveUpOn=A|404|5xx,retryOn=B|C,maxRetryAfter=0",
    );
    assert_eq!(all, same);
}

#[test]
fn another_strategy_drops_the_numbers_without_effect_on_it() {
    let p = level(&json!({"policy": "exponential", "strategy": "linear"}));
    assert_eq!(Partial::resolve(&[p], &[]), Partial::resolve(&[line("linear")], &[]));
    let p = level(&json!({"policy": "stepped", "strategy": "fixed", "base": "5s"}));
    assert_eq!(Partial::resolve(&[p], &[]).unwrap().delay(3), Millis::from_secs(5));
}

#[test]
fn delays_listed_without_a_strategy_are_steps() {
    assert_eq!(level(&json!({"steps": ["1s", 5000]})).strategy, Some(Strategy::Steps));
    let stray = level(&json!({"policy": "http", "steps": ["1s"]}));
    assert_eq!(Partial::resolve(&[stray], &[]).unwrap_err().field, "steps");
}

#[test]
fn whole_policies_and_single_levels_read_back_from_their_objects() {
    for preset in PRESETS {
        let p = Partial::resolve(&[preset.partial()], &Role::Handler.default_give_up_on()).unwrap();
        assert_eq!(Partial::resolve(&[level(&p.to_json())], &[]), Ok(p), "{}", preset.name);
        assert_eq!(level(&preset.partial().to_json()), preset.partial());
    }
    let queue = level(&json!({"maxAttempts": 5, "retryOn": []}));
    assert_eq!(queue.to_json(), json!({"maxRetries": 4, "retryOn": []}));
    assert_eq!(level(&queue.to_json()), queue);
}

#[test]
fn an_error_names_the_field_as_written_in_the_input() {
    for (value, field) in [
        (json!(7), ""),
        (json!(null), ""),
        (json!("nope"), ""),
        (json!({"policy": "nope"}), "policy"),
        (json!({"policy": "http:base=x"}), "policy"),
        (json!({"policy": 3}), "policy"),
        (json!({"base": "soon"}), "base"),
        (json!({"base": 1.5}), "base"),
        (json!({"base": -1}), "base"),
        (json!({"base": null}), "base"),
        (json!({"base": ["1s"]}), "base"),
        (json!({"maxRetries": "5"}), "maxRetries"),
        (json!({"maxRetries": 5.0}), "maxRetries"),
        (json!({"maxRetries": 1e300}), "maxRetries"),
        (json!({"maxRetries": 3, "maxAttempts": 3}), "maxRetries"),
        (json!({"steps": []}), "steps"),
        (json!({"steps": [["1s"]]}), "steps"),
        (json!({"jitter": true}), "jitter"),
        (json!({"giveUpOn": ["a b"]}), "giveUpOn"),
        (json!({"giveUpOn": vec!["A"; 101]}), "giveUpOn"),
        (json!({"retryon": []}), "retryon"),
        (json!({"RetryBackoffBaseMS": "soon"}), "RetryBackoffBaseMS"),
        (json!({"jitterFactor": 2}), "jitterFactor"),
        (json!({"jitterEnabled": 1}), "jitterEnabled"),
        (json!({"retryStrategy": "steps"}), "retryStrategy"),
    ] {
        let error = refusal(&value);
        assert_eq!(error.field, field, "{value}: {error}");
    }
    assert!(refusal(&json!({"maxRetires": 1})).to_string().contains("did you mean `maxRetries`?"));
}

#[test]
fn the_library_familys_names_select_full_jitter() {
    let p = level(&json!({"MaxRetries": 5, "RetryBackoffBaseMS": 250, "RetryBackoffMaxMS": 10_000}));
    assert_eq!(p, line("full-jitter:retries=5,base=250ms,cap=10s"));
    assert_eq!(level(&json!({"MaxRetries": 3})), line("full-jitter"));
}

#[test]
fn the_scheduler_familys_names_select_exponential() {
    let p = level(&json!({"maxRetries": 5, "retryDelay": 30_000, "useExponentialBackoff": true}));
    assert_eq!(p, line("exponential:retries=5,base=30s"));
    let p = level(&json!({"baseRetryDelay": 5000, "maxRetryDelay": 60_000, "retryStrategy": "FIBONACCI"}));
    assert_eq!(p, line("fibonacci:base=5s,cap=1m"));
    assert_eq!(level(&json!({"useExponentialBackoff": false})), line("fixed"));
    assert_eq!(level(&json!({"useExponentialBackoff": false, "retryStrategy": "linear"})), line("linear"));
    assert_eq!(level(&json!({"jitterEnabled": false, "jitterFactor": 0.5})), line("exponential:jitter=none"));
    assert_eq!(level(&json!({"jitterFactor": 0.5})), line("exponential:jitter=spread(0.5)"));
    assert_eq!(level(&json!({"jitterEnabled": true})).jitter, line("exponential").jitter);
    assert_ne!(level(&json!({"jitterEnabled": false})).jitter, Some(Jitter::Full));
}

#[test]
fn the_http_familys_name_selects_http() {
    assert_eq!(level(&json!({"maxRetryCount": 7})), line("http:retries=7"));
}

#[test]
fn a_named_policy_or_strategy_overrides_the_preset_of_foreign_names() {
    assert_eq!(level(&json!({"policy": "stepped", "maxRetryCount": 5})), line("stepped:retries=5"));
    let p = level(&json!({"strategy": "linear", "retryDelay": 1000}));
    assert_eq!(p, Partial { strategy: Some(Strategy::Linear), base: Some(Millis::from_secs(1)), ..Partial::default() });
}

#[test]
fn contradictions_between_names_are_refused() {
    for value in [
        json!({"maxRetryCount": 3, "MaxRetries": 3}),
        json!({"maxRetryCount": 3, "retryDelay": 3}),
        json!({"maxRetryCount": 3, "maxRetries": 4}),
        json!({"maxRetryCount": 3, "maxAttempts": 3}),
        json!({"retryDelay": 1000, "baseRetryDelay": 2000}),
        json!({"retryDelay": 1000, "base": "2s"}),
        json!({"strategy": "fixed", "useExponentialBackoff": true}),
        json!({"retryStrategy": "linear", "useExponentialBackoff": true}),
        json!({"retryStrategy": "exponential", "useExponentialBackoff": false}),
        json!({"jitter": "full", "jitterFactor": 0.2}),
        json!({"maxDelay": "5m", "maxRetryDelay": 1000}),
    ] {
        refusal(&value);
    }
    level(&json!({"maxRetryCount": 3, "maxRetries": 3}));
    level(&json!({"retryDelay": 1000, "baseRetryDelay": 1000}));
}
