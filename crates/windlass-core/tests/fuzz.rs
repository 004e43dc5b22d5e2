//! Everything in core that reads text from outside: whatever the text, no panic, and what was read holds its promises.

use serde_json::Value;
use windlass_core::gate::Rate;
use windlass_core::policy::{Partial, Pattern, Role};
use windlass_core::{Cadence, Millis, Policy, Secret, Timestamp, explain, preview};
use windlass_fuzz::fuzz;

const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A policy that was read can be completed, shown and read again.
fn policy_holds(partial: &Partial) {
    let Ok(policy): Result<Policy, _> = Partial::resolve(&[partial.clone(), Role::Handler.default_policy()], &[])
    else {
        return;
    };
    for delay in preview(&policy, 20).delays {
        assert!(delay.window.max <= policy.max_delay.unwrap_or(delay.window.max), "{policy:?}");
    }
    assert!(!explain(&policy).is_empty());
    let again = Partial::from_json(&policy.to_json(), &|_| None).expect("what was printed can be read");
    assert_eq!(Partial::resolve(&[again], &[]).expect("it is complete"), policy);
}

#[test]
fn policy_lines() {
    fuzz("policy_line", |bytes| match Partial::parse_line(&text(bytes)) {
        Ok(partial) => policy_holds(&partial),
        Err(error) => assert!(!error.to_string().is_empty()),
    });
}

#[test]
fn policy_objects() {
    fuzz("policy_object", |bytes| {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
        match Partial::from_json(&value, &|_| None) {
            Ok(partial) => policy_holds(&partial),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

#[test]
fn cron_lines() {
    fuzz("cron", |bytes| {
        for zone in ["UTC", "Europe/Berlin"] {
            let Ok(cadence) = Cadence::read(&text(bytes), zone, NOON) else { continue };
            let firings = cadence.next_n(NOON, 5);
            assert!(firings.iter().all(|at| *at > NOON) && firings.is_sorted(), "{cadence:?}: {firings:?}");
        }
    });
}

#[test]
fn durations() {
    fuzz("duration", |bytes| {
        if let Ok(span) = Millis::parse(&text(bytes)) {
            assert_eq!(Millis::parse(&span.to_string()), Ok(span));
        }
    });
}

#[test]
fn moments() {
    fuzz("moment", |bytes| {
        if let Some(at) = Timestamp::parse(&text(bytes)) {
            assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }
    });
}

#[test]
fn secrets_and_signatures() {
    let known = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret");
    fuzz("secret", |bytes| {
        // As a signature, whatever arrives is refused.
        let now = NOON.as_millis() / 1000;
        assert!(known.verify("id", now, b"{}", &text(bytes), now).is_err());
        if let Ok(secret) = Secret::parse(&text(bytes)) {
            assert_eq!(Secret::parse(&secret.to_text()).expect("it reads back").to_text(), secret.to_text());
            assert!(secret.sign("id", now, b"{}").starts_with("v1,"));
        }
    });
}

#[test]
fn patterns_and_rates() {
    fuzz("pattern", |bytes| {
        let text = text(bytes);
        if let Some(pattern) = Pattern::parse(&text) {
            assert_eq!(Pattern::parse(&pattern.to_string()), Some(pattern));
        }
        let _ = Rate::parse(&text);
    });
}
