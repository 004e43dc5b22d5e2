//! Retry-After: how long a receiver asks us to wait, in seconds or as a date.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use std::time::UNIX_EPOCH;
use windlass_core::{Advice, Millis, Timestamp};

/// The delay that the response's headers ask for; the policy bounds it. Invalid values, past dates and zero are
/// ignored.
pub(super) fn advice(headers: &HeaderMap, now: Timestamp) -> Advice {
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| span(text.trim(), now));
    asked.filter(|span| !span.is_zero()).map_or(Advice::None, Advice::RetryAfter)
}

fn span(text: &str, now: Timestamp) -> Option<Millis> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number of seconds that is too large counts as the largest one.
        return Some(Millis::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((Timestamp::EPOCH + Millis::from(moment)).since(now))
}
