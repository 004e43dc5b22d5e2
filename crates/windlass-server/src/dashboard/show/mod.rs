//! How values are shown: times, numbers, states. Templates get text that is ready; `parts.html` has their shapes.

mod json;

pub(super) use json::{mask, pretty};

use windlass_core::{JobId, Millis, Reason, State, Timestamp};

/// A moment: relative on the page, exact on hover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) exact: String,
    pub(crate) relative: String,
    pub(crate) ms: i64,
}

impl Moment {
    pub(crate) fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { exact: at.to_string(), relative: relative(at, now), ms: at.as_millis() }
    }

    pub(crate) fn some(at: Option<Timestamp>, now: Timestamp) -> Option<Self> {
        at.map(|at| Self::new(at, now))
    }
}

/// `12s ago`, `in 3m`, `now`.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let (later, earlier) = (at.since(now), now.since(at));
    match (later.get() >= 1000, earlier.get() >= 1000) {
        (true, _) => format!("in {}", rough(later)),
        (_, true) => format!("{} ago", rough(earlier)),
        (false, false) => "now".into(),
    }
}

/// One unit, rounded down: `59s`, `3m`, `2h`, `5d`. Finer than that is not read at a glance.
pub(crate) fn rough(span: Millis) -> String {
    let seconds = span.get() / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A span for reading: at most two units, or milliseconds with a fraction below a second.
pub(crate) fn span(span: Millis) -> String {
    let ms = span.get();
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..10_000 => format!("{:.1}s", ms as f64 / 1000.0).replace(".0s", "s"),
        10_000..60_000 => format!("{}s", ms / 1000),
        60_000..3_600_000 => two(ms / 60_000, "m", ms / 1000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "m"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}

fn two(large: u64, unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit} {small}{small_unit}") }
}

/// `12 345`, with thin spaces between thousands.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

/// Jobs per second: `0`, `0.03/s`, `12.5/s`, `1 200/s`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        r if r <= 0.0 => "0".into(),
        r if r < 0.01 => format!("{r:.4}/s"),
        r if r < 10.0 => format!("{r:.2}/s"),
        r if r < 100.0 => format!("{r:.1}/s"),
        r => format!("{}/s", number(r.round() as u64)),
    }
}

/// A share from 0 to 1 as percent.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => "–".into(),
        Some(share) if share > 0.0 && share < 0.001 => "<0.1 %".into(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// A state with its shape, so that colour is never the only sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateView {
    pub(crate) word: &'static str,
    pub(crate) shape: &'static str,
}

pub(crate) const fn state(state: State) -> StateView {
    let shape = match state {
        State::Queued => "○",
        State::Running => "▶",
        State::Retrying => "↻",
        State::Succeeded => "✓",
        State::Failed => "✕",
        State::Cancelled => "⊘",
    };
    StateView { word: state.as_str(), shape }
}

pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Permanent => "permanent: the failure is of a kind that is never retried",
        Reason::Exhausted => "exhausted: all retries of its policy are used up",
        Reason::Deadline => "deadline: the next try would start too late for its policy",
        Reason::Expired => "expired: it was not started in time",
        Reason::AtMostOnce => "at most once: it had started, so it may not start again",
        Reason::CrashLoop => "crash loop: it lost its worker too often in a row",
    }
}

/// The first characters of a text, without line breaks.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() { format!("{shown}…") } else { shown }
}

/// An id in an address.
pub(crate) fn id(text: &str) -> Option<JobId> {
    text.parse().ok().filter(|id| *id > 0).map(JobId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_in_one_unit() {
        let now = Timestamp::from_millis(1_000_000_000);
        let at = |ms: i64| relative(Timestamp::from_millis(1_000_000_000 + ms), now);
        let shown = [0, 999, 1000, -1000, -59_999, -60_000, -7_200_000, 172_800_000].map(at);
        assert_eq!(shown, ["now", "now", "in 1s", "1s ago", "59s ago", "1m ago", "2h ago", "in 2d"]);
    }

    #[test]
    fn spans_have_at_most_two_units() {
        let spans = [0, 999, 1000, 1500, 59_000, 61_000, 3_600_000, 90_061_000].map(|ms| span(Millis::new(ms)));
        assert_eq!(spans, ["0ms", "999ms", "1s", "1.5s", "59s", "1m 1s", "1h", "1d 1h"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]);
    }
}
