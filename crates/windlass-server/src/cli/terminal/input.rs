//! Spans and moments on the command line. A number without a unit is refused: `--delay 5` could mean seconds or
//! milliseconds.

use windlass::Clock;
use windlass_core::{Millis, Timestamp};

/// A span with its unit, such as `30s`. It is passed on as it was written.
pub(crate) fn span(text: &str) -> Result<String, String> {
    if !text.is_empty() && text != "0" && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("the number has no unit; write {text}s, {text}m, {text}h or {text}ms"));
    }
    Millis::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A span, or one of these words.
pub(crate) fn span_or(text: &str, words: &[&str]) -> Result<String, String> {
    if words.contains(&text) { Ok(text.to_owned()) } else { span(text) }
}

/// How long an idempotency key is kept.
pub(crate) fn key_window(text: &str) -> Result<String, String> {
    span_or(text, &["live"])
}

/// How long finished jobs are kept.
pub(crate) fn retention(text: &str) -> Result<String, String> {
    span_or(text, &["forever"])
}

/// A moment, or how long ago it was: `1h`.
pub(crate) fn since(text: &str) -> Result<String, String> {
    since_at(text, Clock::system().now())
}

fn since_at(text: &str, now: Timestamp) -> Result<String, String> {
    if Timestamp::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let ago = span(text).ok().and_then(|text| Millis::parse(&text).ok());
    let form = "write a moment such as 2026-01-01T12:00:00Z, or how long ago it was, such as 1h";
    ago.map(|ago| (now - ago).to_string()).ok_or_else(|| form.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_a_unit() {
        for good in ["5s", "1m30s", "250ms", "0", "2h"] {
            assert_eq!(span(good).as_deref(), Ok(good));
        }
        assert!(span("5").unwrap_err().contains("write 5s, 5m, 5h or 5ms"));
        assert!(span("").is_err() && span("soon").is_err());
        assert_eq!(retention("forever").as_deref(), Ok("forever"));
        assert!(key_window("forever").is_err());
    }

    #[test]
    fn since_is_a_moment_or_a_span_before_now() {
        let now = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
        assert_eq!(since_at("1h30m", now).as_deref(), Ok("2026-01-01T10:30:00Z"));
        assert_eq!(since_at("2025-12-31T00:00:00Z", now).as_deref(), Ok("2025-12-31T00:00:00Z"));
        for wrong in ["60", "yesterday", ""] {
            assert!(since_at(wrong, now).is_err(), "{wrong}");
        }
    }
}
