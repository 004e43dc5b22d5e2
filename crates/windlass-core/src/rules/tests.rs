#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::policy::no_names;
use serde_json::{Value, json};

fn read(value: &Value) -> Result<Vec<Rule>, crate::gate::FlowError> {
    Rule::list_from_value("/rules", value, &no_names)
}

fn failure(class: &str, status: Option<u16>, message: &str) -> Failure {
    Failure { status, ..Failure::new(message).class(class) }
}

#[test]
fn the_first_rule_that_has_all_of_its_match_decides() {
    let rules = read(&json!([
        {"match": {"class": "Stripe*", "status": "5xx"}, "then": "hold", "for": "30s"},
        {"match": {"message": "/DEADLOCK|timeout/i"}, "then": "retry", "policy": "low-latency"},
        {"match": {"class": "*"}, "then": "giveUp"},
    ]))
    .unwrap();
    let number = |class, status, message| {
        let found = first_match(&rules, LiveRules::default(), &failure(class, status, message));
        found.map(|(name, _)| name.number)
    };
    assert_eq!(number("StripeError", Some(503), "no"), Some(1));
    assert_eq!(number("StripeError", Some(404), "no"), Some(3));
    assert_eq!(number("Error", None, "a deadlock was found"), Some(2));
    assert_eq!(first_match(&rules[..1], LiveRules::default(), &failure("Error", Some(503), "no")), None);
}

#[test]
fn the_policys_rules_come_before_the_kinds_and_the_queues() {
    let any = |then| read(&json!([{"match": {"class": "*"}, "then": then}])).unwrap();
    let (policy, kind, queue) = (any("retry"), any("giveUp"), any("discard"));
    let source = |policy, kind, queue| {
        first_match(policy, LiveRules { kind, queue }, &failure("Error", None, "")).map(|(name, _)| name.to_string())
    };
    assert_eq!(source(&policy, &kind, &queue).as_deref(), Some("rule 1 of the policy"));
    assert_eq!(source(&[], &kind, &queue).as_deref(), Some("rule 1 of the kind"));
    assert_eq!(source(&[], &[], &queue).as_deref(), Some("rule 1 of the queue"));
}

#[test]
fn a_star_stands_for_any_text() {
    for (glob, class, expected) in [
        ("Stripe*", "StripeError", true),
        ("Stripe*", "Stripe", true),
        ("Stripe*", "MyStripe", false),
        ("*Error", "StripeError", true),
        ("*Error", "Errors", false),
        ("a*b*c", "axxbxxc", true),
        ("a*b*c", "axxcxxb", false),
        ("a*a", "a", false),
        ("*", "", true),
        ("Timeout", "Timeouts", false),
    ] {
        assert_eq!(ClassGlob::parse(glob).unwrap().matches(class), expected, "{glob} {class}");
    }
}

#[test]
fn rules_read_back_and_name_the_wrong_field() {
    let good = json!([
        {"match": {"class": "A", "status": "503", "message": "/x,y|=z/i"}, "then": "retry", "for": "30s"},
        {"match": {"status": "4xx"}, "then": "discard"},
    ]);
    assert_eq!(Rule::list_to_value(&read(&good).unwrap()), good);
    for (rule, pointer) in [
        (json!(3), "/rules/0"),
        (json!({"then": "retry"}), "/rules/0/match"),
        (json!({"match": {}, "then": "retry"}), "/rules/0/match"),
        (json!({"match": {"class": "A B"}, "then": "retry"}), "/rules/0/match/class"),
        (json!({"match": {"status": "600"}, "then": "retry"}), "/rules/0/match/status"),
        (json!({"match": {"message": "plain"}, "then": "retry"}), "/rules/0/match/message"),
        (json!({"match": {"message": "/(/"}, "then": "retry"}), "/rules/0/match/message"),
        (json!({"match": {"message": "/a/g"}, "then": "retry"}), "/rules/0/match/message"),
        (json!({"match": {"message": r"/(\w{100}){100}/"}, "then": "retry"}), "/rules/0/match/message"),
        (json!({"match": {"class": "A"}}), "/rules/0/then"),
        (json!({"match": {"class": "A"}, "then": "explode"}), "/rules/0/then"),
        (json!({"match": {"class": "A"}, "then": "snooze"}), "/rules/0/for"),
        (json!({"match": {"class": "A"}, "then": "snooze", "for": "0s"}), "/rules/0/for"),
        (json!({"match": {"class": "A"}, "then": "giveUp", "for": "1s"}), "/rules/0/for"),
        (json!({"match": {"class": "A"}, "then": "retry", "for": "1s", "policy": "http"}), "/rules/0/for"),
        (json!({"match": {"class": "A"}, "then": "giveUp", "policy": "http"}), "/rules/0/policy"),
        (json!({"match": {"class": "A"}, "then": "retry", "policy": "htttp"}), "/rules/0/policy"),
        (json!({"match": {"class": "A"}, "then": "retry", "when": 1}), "/rules/0/when"),
    ] {
        let error = read(&json!([rule])).unwrap_err();
        assert_eq!(error.pointer, pointer, "{rule}: {error}");
    }
    assert_eq!(read(&json!({})).unwrap_err().pointer, "/rules");
    let long = json!({"match": {"message": format!("/{}/", "x".repeat(400))}, "then": "retry"});
    assert_eq!(read(&Value::Array(vec![long; 6])).unwrap_err().pointer, "/rules");
}
