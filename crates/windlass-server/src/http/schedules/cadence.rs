//! The text a store keeps for a cadence, and back.

use windlass::store::ScheduleSpec;
use windlass_core::{Cadence, CadenceError, Millis, Timestamp};

/// Marks an interval: `every 30s`.
const EVERY: &str = "every ";

/// The interval in a cadence's text, if it is one.
pub(super) fn interval(text: &str) -> Option<Millis> {
    text.strip_prefix(EVERY).and_then(|span| Millis::parse(span).ok())
}

pub(super) fn interval_text(span: Millis) -> String {
    format!("{EVERY}{span}")
}

/// The cadence of a schedule; intervals count from `anchor`, the moment it was made.
pub(super) fn of(spec: &ScheduleSpec, anchor: Timestamp) -> Result<Cadence, CadenceError> {
    windlass::upkeep::schedules::cadence(spec, anchor)
}

pub(super) fn read(text: &str, zone: &str, anchor: Timestamp) -> Result<Cadence, CadenceError> {
    match interval(text) {
        Some(span) => Cadence::every(span, anchor),
        None => Cadence::cron(text, Some(zone)),
    }
}
