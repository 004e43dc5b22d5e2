use super::*;
use crate::policy::{Partial, Role};

fn words(line: &str, role: Role) -> String {
    let level = Partial::parse_line(line).unwrap();
    explain(&Partial::resolve(&[level], &role.default_give_up_on()).unwrap())
}

#[test]
fn policies_are_reported_in_words() {
    for (line, role, expected) in [
        (
            "exponential",
            Role::Handler,
            "up to 4 attempts: at once, then about 1 min, 2 min and 4 min later, ±20 %; gives up at once on \
             ValidationError, NotFoundError, UnauthorizedError, ForbiddenError and SyntaxError; \
             worst case after 8 min 24 s",
        ),
        (
            "stepped",
            Role::Delivery,
            "up to 4 attempts: at once, then 30 s, 1 min and 2 min later; gives up at once on 410; \
             worst case after 3 min 30 s",
        ),
        (
            "full-jitter",
            Role::Http,
            "up to 4 attempts: at once, then at most 500 ms, 1 s and 2 s later (anywhere from 0); \
             retries every failure; worst case after 3 s 500 ms",
        ),
        (
            "fixed:jitter=equal,retryOn=Timeout|5xx",
            Role::Handler,
            "up to 4 attempts: at once, then at most 1 min each later (anywhere from half of it); \
             retries only Timeout and 5xx; worst case after 3 min",
        ),
        (
            "queue-worker:retries=8,maxElapsed=1m,maxCrashes=1,maxRetryAfter=5s",
            Role::Http,
            "up to 9 attempts: at once, then 1 s, 2 s, 4 s, 8 s, 16 s, … 1 min later, up to 30 % longer, \
             but never more than 1 min; retries every failure; gives up if the next attempt would start more than 1 min \
             after the first; quarantined if its worker is lost once; a server's Retry-After is followed up to 5 s; \
             worst case after 1 min",
        ),
        (
            "linear:base=1s,jitter=decorrelated,retries=2",
            Role::Http,
            "up to 3 attempts: at once, then about 1 s and 2 s later (anywhere from 1 s to three times the previous wait); \
             retries every failure; worst case after 4 s",
        ),
        ("once", Role::Handler, "one attempt, no retry"),
    ] {
        assert_eq!(words(line, role), expected, "{line}");
    }
}

#[test]
fn one_retry_reads_well() {
    assert!(
        words("fixed:base=5s,jitter=none,retries=1", Role::Http)
            .starts_with("up to 2 attempts: at once, then 5 s later")
    );
}

#[test]
fn rules_are_said_in_words() {
    let level = serde_json::json!({"policy": "http", "rules": [
        {"match": {"class": "Stripe*", "status": "5xx"}, "then": "hold", "for": "30s"},
        {"match": {"message": "/deadlock/i"}, "then": "retry", "policy": "low-latency"},
        {"match": {"class": "Gone"}, "then": "discard"},
    ]});
    let level = crate::policy::Partial::from_json(&level, &crate::policy::no_names).unwrap();
    let words = explain(&crate::policy::Partial::resolve(&[level], &[]).unwrap());
    for said in [
        "; on Stripe* with status 5xx: holds its key for 30 s and counts no failure; ",
        "; on failures whose message matches /deadlock/i: retries with the delays of 100 ms and 200 ms; ",
        "; on Gone: gives up at once and discards the job; ",
    ] {
        assert!(words.contains(said), "{words}");
    }
}
