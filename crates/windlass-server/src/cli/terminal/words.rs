//! Values of the API as text: moments as distances, spans, states in their colours.

use crate::cli::terminal::grid::Shown;
use crate::cli::terminal::screen::Hue;
use serde_json::Value;
use windlass::Clock;
use windlass_core::{Millis, Timestamp};

/// The moment a table is drawn; its distances are measured from this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now(Timestamp);

impl Now {
    pub(crate) fn read() -> Self {
        Self(Clock::system().now())
    }

    /// `in 2m`, `3h ago`, `now`; empty if there is no moment.
    pub(crate) fn distance(self, moment: &Value) -> String {
        let Some(moment) = moment.as_str().and_then(Timestamp::parse) else { return String::new() };
        let (ahead, ago) = (moment.since(self.0), self.0.since(moment));
        match (ahead.get(), ago.get()) {
            (1000.., _) => format!("in {}", rough(ahead)),
            (_, 1000..) => format!("{} ago", rough(ago)),
            _ => "now".into(),
        }
    }
}

/// A span in at most two units: `3d4h`, `12m`, `1.2s`, `340ms`.
pub(crate) fn rough(span: Millis) -> String {
    let ms = span.get();
    let two = |big: u64, name: &str, small: u64, small_name: &str| match small {
        0 => format!("{big}{name}"),
        _ => format!("{big}{name}{small}{small_name}"),
    };
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..10_000 => {
            let tenths = ms / 100;
            if tenths.is_multiple_of(10) {
                format!("{}s", tenths / 10)
            } else {
                format!("{}.{}s", tenths / 10, tenths % 10)
            }
        }
        10_000..60_000 => format!("{}s", ms / 1000),
        60_000..3_600_000 => two(ms / 60_000, "m", ms / 1000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "m"),
        86_400_000..864_000_000 => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
        _ => format!("{}d", ms / 86_400_000),
    }
}

/// Milliseconds as a span; empty for null.
pub(crate) fn span(ms: &Value) -> String {
    ms.as_u64().map_or_else(String::new, |ms| rough(Millis::new(ms)))
}

/// A text or number as it is; empty for null.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A job's state in its colour.
pub(crate) fn state(value: &Value) -> Shown {
    let word = plain(value);
    let hue = match word.as_str() {
        "succeeded" => Hue::Good,
        "failed" => Hue::Bad,
        "retrying" => Hue::Warn,
        "running" => Hue::Live,
        _ => Hue::Faint,
    };
    Shown::hued(word, hue)
}

/// `1,234,567`
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `2 jobs`
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_reported_in_at_most_two_units() {
        for (ms, reported) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_250, "1.2s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (90_500, "1m30s"),
            (3_600_000, "1h"),
            (90_000_000, "1d1h"),
            (900_000_000, "10d"),
        ] {
            assert_eq!(rough(Millis::new(ms)), reported);
        }
    }

    #[test]
    fn large_counts_are_grouped() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "job"), "1 job");
    }
}
