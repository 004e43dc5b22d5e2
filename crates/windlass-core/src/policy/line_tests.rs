//! The meaning of lines, and the errors for wrong ones.

use super::*;
use crate::backoff::Ratio;
use crate::jitter::Jitter;
use crate::policy::{Bound, Role};
use crate::time::Millis;

fn policy(line: &str) -> Policy {
    let level = Partial::parse_line(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    Partial::resolve(&[level], &[]).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn refusal(line: &str) -> PolicyError {
    Partial::parse_line(line).expect_err(line)
}

#[test]
fn a_presets_name_alone_is_the_preset() {
    for preset in PRESETS {
        assert_eq!(Partial::parse_line(preset.name), Ok(preset.partial()));
        assert_eq!(Partial::parse_line(&format!("  {}  ", preset.name)), Ok(preset.partial()));
    }
}

#[test]
fn the_lines_in_the_guide_have_the_documented_meaning() {
    let p = policy("exponential:base=1s,factor=2,cap=5m,jitter=full,retries=5");
    assert_eq!(p.backoff, Backoff::Exponential { base: Millis::from_secs(1), factor: Ratio::TWO });
    assert_eq!((p.max_delay, p.jitter, p.max_retries), (Some(Millis::from_secs(300)), Jitter::Full, 5));

    let p = policy("steps:30s/60s/120s,retries=3");
    assert_eq!(p.backoff, Backoff::Steps([30, 60, 120].map(Millis::from_secs).to_vec()));
    assert_eq!((p.max_delay, p.jitter, p.max_retries), (None, Jitter::None, 3));

    let p = policy("fibonacci:base=1m,jitter=spread(0.2)");
    assert_eq!(p, policy("fibonacci"));
}

#[test]
fn steps_alone_retry_once_for_each_step() {
    let p = policy("steps: 1s / 5s ");
    assert_eq!((p.max_retries, p.max_delay, p.jitter), (2, None, Jitter::None));
}

#[test]
fn omitted_fields_come_from_the_preset_of_that_name() {
    let level = Partial::parse_line("full-jitter:retries=5").unwrap();
    assert_eq!(level, Partial { max_retries: Some(5), ..Partial::parse_line("full-jitter").unwrap() });
}

#[test]
fn both_the_short_and_the_long_names_are_read() {
    assert_eq!(policy("http:cap=1m,retries=4"), policy("http:maxDelay=1m,maxAttempts=5"));
    assert_eq!(policy("http:attempts=5,retries=4"), policy("http:retries=4"));
}

#[test]
fn limits_and_lists_can_be_removed() {
    let p = policy("http:cap=none,maxElapsed=none,giveUpOn=none,retryOn=none");
    assert_eq!((p.max_delay, p.max_elapsed, p.give_up_on, p.retry_on), (None, None, vec![], Some(vec![])));
}

#[test]
fn lists_hold_classes_and_statuses() {
    let p = policy("http:giveUpOn=ValidationError|404|4xx,retryOn=Timeout");
    let expected = [Pattern::Class("ValidationError".into()), Pattern::Status(404), Pattern::Hundred(4)];
    assert_eq!(p.give_up_on, expected);
    assert_eq!(p.retry_on, Some(vec![Pattern::Class("Timeout".into())]));
}

#[test]
fn other_names_can_start_a_line_but_not_replace_a_preset() {
    let own = Partial { max_retries: Some(7), max_delay: Some(Bound::None), ..Partial::default() };
    let names = |_: &str| Some(own.clone());
    assert_eq!(Partial::parse_line_with("night", &names), Ok(own.clone()));
    let line = Partial::parse_line_with("night:base=1s", &names);
    assert_eq!(line, Ok(Partial { base: Some(Millis::from_secs(1)), ..own.clone() }));
    assert_eq!(Partial::parse_line_with("http", &names), Partial::parse_line("http"));
}

#[test]
fn the_canonical_line_names_every_field() {
    let p = Partial::resolve(&[Role::Handler.default_policy()], &Role::Handler.default_give_up_on()).unwrap();
    assert_eq!(
        p.to_string(),
        "exponential:base=1m,factor=2,cap=1h,jitter=spread(0.2),retries=3,maxElapsed=none,maxCrashes=3,\
         giveUpOn=ValidationError|NotFoundError|UnauthorizedError|ForbiddenError|SyntaxError,maxRetryAfter=1h"
    );
    assert_eq!(
        policy("steps:30s/60s,retryOn=5xx").to_string(),
        "steps:30s/1m,cap=none,jitter=none,retries=2,maxElapsed=none,maxCrashes=3,giveUpOn=none,retryOn=5xx,\
         maxRetryAfter=1h"
    );
}

#[test]
fn every_presets_canonical_line_reads_back() {
    for preset in PRESETS {
        let p = Partial::resolve(&[preset.partial()], &Role::Handler.default_give_up_on()).unwrap();
        assert_eq!(Policy::parse_canonical(&p.to_string()), Ok(p), "{}", preset.name);
    }
}

#[test]
fn a_wrong_line_is_refused_at_its_position() {
    for (line, at, field) in [
        ("", 0, ""),
        ("   ", 3, ""),
        ("expnential", 0, ""),
        ("  nope:base=1s", 2, ""),
        ("exponential:", 12, ""),
        ("exponential:base", 12, ""),
        ("exponential:base=1s,", 20, ""),
        ("exponential:base=1x", 17, "base"),
        ("exponential: base = 1x", 20, "base"),
        ("exponential:bse=1s", 12, "bse"),
        ("exponential:strategy=fixed", 12, "strategy"),
        ("exponential:base=1s,base=2s", 20, "base"),
        ("exponential:cap=1s,maxDelay=2s", 19, "maxDelay"),
        ("exponential:factor=0.5", 19, "factor"),
        ("exponential:factor=1.0000001", 19, "factor"),
        ("exponential:jitter=spread(2)", 19, "jitter"),
        ("exponential:jitter=some", 19, "jitter"),
        ("exponential:retries=1001", 20, "retries"),
        ("exponential:retries=-1", 20, "retries"),
        ("exponential:retries=+1", 20, "retries"),
        ("exponential:attempts=0", 21, "attempts"),
        ("exponential:retries=3,attempts=3", 22, "attempts"),
        ("exponential:attempts=3,retries=3", 23, "retries"),
        ("exponential:maxCrashes=0", 23, "maxCrashes"),
        ("exponential:giveUpOn=", 21, "giveUpOn"),
        ("exponential:giveUpOn=A||B", 21, "giveUpOn"),
        ("exponential:giveUpOn=999", 21, "giveUpOn"),
        ("exponential:giveUpOn=9xx", 21, "giveUpOn"),
        ("exponential:giveUpOn=none|A", 21, "giveUpOn"),
        ("exponential:steps=1s/2s", 12, "steps"),
        ("fixed:factor=2", 6, "factor"),
        ("stepped:base=1s", 8, "base"),
        ("steps", 0, "steps"),
        ("steps:", 6, "steps"),
        ("steps:retries=3", 6, "steps"),
        ("steps:1s//2s", 6, "steps"),
        ("é:base=1s", 0, ""),
        ("exponential:é=1", 12, "é"),
    ] {
        let error = refusal(line);
        assert_eq!((error.position, error.field.as_str()), (Some(at), field), "{line}: {error}");
    }
}

#[test]
fn an_error_names_what_is_accepted_and_what_was_probably_meant() {
    let text = refusal("expnential").to_string();
    assert!(
        text.starts_with("at position 1: `expnential` is not a policy (did you mean `exponential`?); write"),
        "{text}"
    );
    assert!(text.contains("steps:30s/60s/120s,retries=3"), "{text}");
    let text = refusal("http:retires=3").to_string();
    assert!(text.contains("did you mean `retries`?") && text.contains("maxRetryAfter"), "{text}");
    let text = refusal("http:base=soon").to_string();
    assert_eq!(
        text,
        "at position 11: base: `soon` is not accepted; write a duration: 500ms, 30s, 1m30s, 2h, or whole milliseconds"
    );
}
