//! A policy in words.

use crate::backoff::Ratio;
use crate::jitter::Jitter;
use crate::policy::{DEFAULT_MAX_CRASHES, DEFAULT_MAX_RETRY_AFTER, Policy};
use crate::preview::preview;
use crate::rules::{Match, Rule, Then};
use crate::time::Millis;

/// Longer lists of delays are shortened to their beginning and end.
const MAX_LISTED: usize = 6;

/// The policy in one sentence: how many attempts, when, what it gives up on, and the worst case.
#[must_use]
pub fn explain(policy: &Policy) -> String {
    let mut parts = vec![attempts(policy)];
    if policy.max_retries > 0 {
        parts.extend(policy.rules.iter().map(in_words));
        parts.extend(classes(policy));
        if let Some(limit) = policy.max_elapsed {
            parts.push(format!("gives up if the next attempt would start more than {} after the first", span(limit)));
        }
        if policy.max_crashes != DEFAULT_MAX_CRASHES {
            parts.push(match policy.max_crashes {
                1 => "quarantined if its worker is lost once".into(),
                n => format!("quarantined if its worker is lost {n} times in a row"),
            });
        }
        if policy.max_retry_after != DEFAULT_MAX_RETRY_AFTER {
            parts.push(format!("a server's Retry-After is followed up to {}", span(policy.max_retry_after)));
        }
        parts.push(format!("worst case after {}", span(worst_case(policy))));
    }
    parts.join("; ")
}

/// The latest start of the last attempt, not counting how long attempts take.
fn worst_case(policy: &Policy) -> Millis {
    let longest = preview(policy, policy.max_retries).longest();
    policy.max_elapsed.map_or(longest, |limit| longest.min(limit))
}

fn attempts(policy: &Policy) -> String {
    if policy.max_retries == 0 {
        return "one attempt, no retry".into();
    }
    let delays: Vec<Millis> = preview(policy, policy.max_retries).delays.iter().map(|d| d.delay).collect();
    let waits = series(&delays);
    let spread = match policy.jitter {
        Jitter::None => format!("{waits} later"),
        Jitter::Full => format!("at most {waits} later (anywhere from 0)"),
        Jitter::Equal => format!("at most {waits} later (anywhere from half of it)"),
        Jitter::Decorrelated => {
            format!("about {waits} later (anywhere from {} to three times the previous wait)", span(policy.delay(1)))
        }
        Jitter::Spread(f) => format!("about {waits} later, ±{}", percent(f)),
        Jitter::Additive(f) => format!("{waits} later, up to {} longer", percent(f)),
    };
    let cap = match (policy.max_delay, policy.jitter) {
        (Some(cap), Jitter::Spread(_) | Jitter::Additive(_)) if delays.contains(&cap) => {
            format!(", but never more than {}", span(cap))
        }
        _ => String::new(),
    };
    format!("up to {} attempts: at once, then {spread}{cap}", policy.max_attempts())
}

fn classes(policy: &Policy) -> Vec<String> {
    let list = |patterns: &[crate::policy::Pattern]| {
        join(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>(), "and")
    };
    let mut parts = Vec::new();
    match policy.retry_on.as_deref() {
        Some([]) => parts.push("retries nothing".into()),
        Some(only) => parts.push(format!("retries only {}", list(only))),
        None => {}
    }
    if !policy.give_up_on.is_empty() {
        parts.push(format!("gives up at once on {}", list(&policy.give_up_on)));
    }
    if parts.is_empty() {
        parts.push("retries every failure".into());
    }
    parts
}

/// What one error rule does: `on Stripe* with 5xx: snoozes 30 s`.
#[must_use]
pub fn in_words(rule: &Rule) -> String {
    let Match { class, status, message } = &rule.matching;
    let mut failures = class.as_ref().map_or_else(|| "failures".to_owned(), ToString::to_string);
    if let Some(status) = status {
        failures.push_str(&format!(" with status {status}"));
    }
    if let Some(message) = message {
        failures.push_str(&format!(" whose message matches {message}"));
    }
    let wait = rule.span.map(span).unwrap_or_default();
    let does = match (rule.then, &rule.policy, rule.span) {
        (Then::Retry, Some(policy), _) => format!("retries with the delays of {}", delays_of(policy)),
        (Then::Retry, None, Some(_)) => format!("retries after {wait}"),
        (Then::Retry, None, None) => "retries".to_owned(),
        (Then::GiveUp, ..) => "gives up at once".to_owned(),
        (Then::Snooze, ..) => format!("waits {wait} and counts no failure"),
        (Then::Hold, ..) => format!("holds its key for {wait} and counts no failure"),
        (Then::Discard, ..) => "gives up at once and discards the job".to_owned(),
    };
    format!("on {failures}: {does}")
}

/// The first delays of a policy, before jitter.
fn delays_of(policy: &Policy) -> String {
    series(&preview(policy, policy.max_retries.clamp(1, 3)).delays.iter().map(|d| d.delay).collect::<Vec<_>>())
}

fn series(delays: &[Millis]) -> String {
    let words: Vec<String> = delays.iter().map(|d| span(*d)).collect();
    if words.iter().all(|w| *w == words[0]) && words.len() > 1 {
        return format!("{} each", words[0]);
    }
    match words.as_slice() {
        [first @ .., last] if words.len() > MAX_LISTED => format!("{}, … {last}", first[..MAX_LISTED - 1].join(", ")),
        _ => join(&words, "and"),
    }
}

fn join(words: &[String], and: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {and} {last}", first.join(", ")),
    }
}

fn percent(share: Ratio) -> String {
    let hundredths = Ratio::from_millionths(share.millionths().saturating_mul(100));
    format!("{hundredths} %")
}

/// A span in words: `1 min`, `8 min 24 s`, `500 ms`; exact, and `0 s` for zero.
#[must_use]
pub fn span(span: Millis) -> String {
    let mut rest = span.get();
    let mut words = Vec::new();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)] {
        if rest >= size {
            words.push(format!("{} {unit}", rest / size));
            rest %= size;
        }
    }
    if words.is_empty() { "0 s".into() } else { words.join(" ") }
}

#[cfg(test)]
mod tests;
